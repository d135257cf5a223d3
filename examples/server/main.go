// Server is one node for the least_conn examples: it holds bidirectional streams, says in each answer which node it is,
// and prints its address. Start a few of them and hand their addresses to examples/client.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

const usage = `Server is one node for the least_conn examples. It serves grpc.testing.TestService and grpc.health.v1.Health,
holds streams until their clients end them, and names itself in the header "node" of each answer.

It prints one line when it is ready, and ends on SIGINT or SIGTERM with status 0:

  listening node=a addr=127.0.0.1:50051

Example, three servers and a client:

  go run ./examples/server -name a -addr 127.0.0.1:50051 &
  go run ./examples/server -name b -addr 127.0.0.1:50052 &
  go run ./examples/server -name c -addr 127.0.0.1:50053 -max-age 5s &
  go run ./examples/client -target 127.0.0.1:50051,127.0.0.1:50052,127.0.0.1:50053

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	addr := flag.String("addr", "127.0.0.1:0", "TCP `address` to listen on; port 0 takes a free one")
	name := flag.String("name", "", "what the node calls itself (default its address)")
	maxAge := flag.Duration("max-age", 0, "send a GOAWAY on connections that are this old, give or take a tenth;\n"+
		"streams on them live on. 0: never")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if *maxAge < 0 {
		return fmt.Errorf("-max-age is %v, want 0 or more", *maxAge)
	}

	node, err := leastconntest.StartNode(leastconntest.Options{Name: *name, Addr: *addr, ServerOptions: ageing(*maxAge)})
	if err != nil {
		return err
	}
	defer node.Close()
	fmt.Printf("listening node=%s addr=%s\n", node.Name(), node.Addr())
	<-ctx.Done()
	return nil
}

func ageing(maxAge time.Duration) []grpc.ServerOption {
	if maxAge == 0 {
		return nil
	}
	return []grpc.ServerOption{grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: maxAge})}
}
