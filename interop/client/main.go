// Client runs gRPC's interop cases over least_conn, with several servers behind one channel.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/leastconn/grpc-leastconn/interop/internal/flags"
	"github.com/leastconn/grpc-leastconn/interop/internal/testserver"
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
)

func main() {
	flags.Main(func(ctx context.Context, args []string, out, errs io.Writer) (status int) {
		if isChild() {
			return runChild(ctx, os.Stdin, out, errs, standard)
		}
		return run(ctx, args, out, errs, standard)
	})
}

// run runs those of cases that args say. In a child the executable must call runChild.
func run(ctx context.Context, args []string, out, errs io.Writer, cases []testCase) (status int) {
	o, err := parse(ctx, args, out, cases)
	if err != nil {
		return flags.Refuse("client", err, errs)
	}
	if err := o.run(ctx, out); err != nil {
		fmt.Fprintln(errs, "client:", err)
		return exitFailed
	}
	return exitPassed
}

// grace is how long RPCs on the client's own servers may outlive the last case.
const grace = time.Second

// run runs the cases one after another, each in a child, and says to out how each went.
func (o *options) run(ctx context.Context, out io.Writer) error {
	if o.own > 0 {
		servers, err := o.startServers(ctx)
		if err != nil {
			return err
		}
		defer servers.Close(grace)
	}
	fmt.Fprintf(out, "servers (%s):", o.TLS)
	for _, s := range o.Servers {
		fmt.Fprint(out, " ", s.Name)
	}
	fmt.Fprintln(out)
	spread := newDistribution(o.Servers)
	var failed []string
	for _, c := range o.cases {
		begun := time.Now()
		sent, err := o.inChild(ctx, c)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted in %s", c.name)
		}
		if err != nil {
			failed = append(failed, c.name)
			fmt.Fprintf(out, "FAIL  %s\n      %s\n", c.name, strings.ReplaceAll(err.Error(), "\n", "\n      "))
			continue
		}
		spread.add(c, sent)
		fmt.Fprintf(out, "pass  %-28s %5d sent %8s\n", c.name, total(sent), time.Since(begun).Round(time.Millisecond))
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d cases failed: %s", len(failed), len(o.cases), strings.Join(failed, ", "))
	}
	if err := spread.check(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d cases passed over least_conn, all counts 0 after each; %s\n", len(o.cases), len(o.cases), spread)
	return nil
}

// startServers starts the client's own servers and trusts them.
func (o *options) startServers(ctx context.Context) (*testserver.Group, error) {
	options := testserver.Options{Host: "127.0.0.1", Count: o.own}
	if o.TLS != nil {
		c, err := testserver.NewCertificate()
		if err != nil {
			return nil, err
		}
		options.Certificate, o.TLS.CA = &c.TLS, c.CA
	}
	servers, err := testserver.Start(options)
	if err != nil {
		return nil, err
	}
	if o.Servers, err = lookUp(ctx, strings.Join(servers.Addrs(), ","), ""); err != nil {
		servers.Close(grace)
		return nil, err
	}
	return servers, nil
}
