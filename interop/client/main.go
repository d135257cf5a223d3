// Client runs gRPC's interop cases over least_conn, with several servers behind one channel.
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
)

const usage = `Client runs gRPC's interop cases over the policy least_conn, against servers of gRPC's interop test service.

Each case runs in a process of its own over one channel to all servers, once all are ready. It has passed when

  - gRPC's own checks of it have passed,
  - each RPC was counted by the policy on the server that it was sent to, and
  - all counts are 0 after it.

At the end, servers must have taken turns: k RPCs one after another over one channel use k of them, or all.

Without --server_host and --server_port the servers are the client's own, on TCP loopback, and with --use_tls they have a
certificate that is made at run time. Otherwise they are yours, such as interop/server or those of other languages.

Not here: pick_first_unary, orca_per_rpc and orca_oob, which test other policies, and the cases that need Google's services.
grpc-go has no cacheable and no compressed cases.

Exit status: 0 if all cases passed, 1 if one failed or was interrupted, 2 if the flags are wrong.

Flags:
`

// Exit statuses, as usage describes them.
const (
	exitPassed = iota
	exitFailed
	exitUsage
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if isChild() {
		os.Exit(obey(ctx, os.Stdin, os.Stdout, os.Stderr, standard))
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, standard))
}

// run runs those of cases that args say. The executable must obey in a child.
func run(ctx context.Context, args []string, out, errs io.Writer, cases []testCase) (status int) {
	o, err := parse(ctx, args, out, cases)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitPassed
	case err != nil:
		fmt.Fprintf(errs, "client: %v; see -h\n", err)
		return exitUsage
	}
	if err := o.run(ctx, out); err != nil {
		fmt.Fprintln(errs, "client:", err)
		return exitFailed
	}
	return exitPassed
}
