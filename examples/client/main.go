// Client opens streams over the load balancing policy least_conn and holds them. What a client of your own needs from the
// policy is in dial.go, and the debug page in servePage.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/debugpage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("client", flag.ExitOnError)
	target := flags.String("target", "", "gRPC `target`, such as nodes:///etc/nodes.yaml or dns-poll:///api.example.com:50051,\n"+
		"or addresses separated by commas. Default: servers of its own, of which one joins later")
	every := flags.Duration("every", time.Second, "how often to open a stream over -target")
	life := flags.Duration("for", 0, "how long to do so, or to serve the page. 0: until interrupted")
	page := flags.String("http", "", "TCP `address` for the debug page, such as 127.0.0.1:8080; whoever reaches it can read the page")
	move := flags.Bool("move", false, "let streams move to servers that join, and away from those that leave")
	_ = flags.Parse(args) // it exits
	if flags.NArg() > 0 || *every <= 0 || *life < 0 {
		return fmt.Errorf("-every is %v, want more than 0; -for is %v, want 0 or more; %q, want flags only", *every, *life, flags.Args())
	}
	if *life > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *life)
		defer cancel()
	}
	if *page != "" {
		listener, err := net.Listen("tcp", *page)
		if err != nil {
			return fmt.Errorf("-http is %q: %w", *page, err)
		}
		defer servePage(listener, out).Close()
	}
	switch {
	case *target == "" && *move:
		return demonstrateMoves(ctx, *page != "", out)
	case *target == "":
		return demonstrate(ctx, *page != "", out)
	}
	conn, err := dialAny(*target)
	if err != nil {
		return fmt.Errorf("-target is %q: %w", *target, err)
	}
	defer conn.Close()
	follow(ctx, conn, *every, *move, out)
	return nil
}

func dialAny(target string) (*grpc.ClientConn, error) {
	if !strings.Contains(target, ",") {
		return dial(target)
	}
	conn, _, err := dialList(target)
	return conn, err
}

// servePage serves the debug page until it is closed.
func servePage(listener net.Listener, out io.Writer) io.Closer {
	server := &http.Server{Handler: debugpage.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener)
	fmt.Fprintf(out, "page http://%s/\n", listener.Addr())
	return server
}
