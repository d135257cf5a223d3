// Server serves gRPC's interop test service, one server or several, until it is told to end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/leastconn/grpc-leastconn/interop/internal/testserver"
)

const usage = `Server serves grpc.testing.TestService for gRPC's interop cases, as the clients of all languages make them.

It prints a line for each server when all are ready:

  listening addr=127.0.0.1:10000

On SIGINT or SIGTERM it sends GOAWAY, lets the RPCs that are under way end within --grace_seconds and ends with status 0; a
second signal ends it at once.

Example, three servers with a certificate of their own and the client:

  go run ./interop/server --servers 3 --port 21081 --use_tls --write_ca_file ca.pem &
  go run ./interop/client --server_port 21081,21082,21083 --use_tls --ca_file ca.pem

Exit status: 0 when ended by a signal, 1 if it could not serve, 2 if the flags are wrong.

Flags:
`

// Exit statuses, as usage describes them.
const (
	exitEnded = iota
	exitFailed
	exitUsage
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run serves until a signal comes.
func run(args []string, out, errs io.Writer) (status int) {
	o, err := parse(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitEnded
	case err != nil:
		fmt.Fprintf(errs, "server: %v; see -h\n", err)
		return exitUsage
	}
	if err := serve(o, out); err != nil {
		fmt.Fprintln(errs, "server:", err)
		return exitFailed
	}
	return exitEnded
}

func serve(o *options, out io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.caFile != "" {
		if err := os.WriteFile(o.caFile, o.ca, 0o644); err != nil {
			return fmt.Errorf("--write_ca_file: %w", err)
		}
	}
	servers, err := testserver.Start(o.Options)
	if err != nil {
		return err
	}
	for _, addr := range servers.Addrs() {
		fmt.Fprintf(out, "listening addr=%s\n", addr)
	}
	<-ctx.Done()
	stop() // the next signal ends the process
	servers.Close(o.grace())
	return nil
}
