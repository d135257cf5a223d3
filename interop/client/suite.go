package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leastconn/grpc-leastconn/interop/internal/testserver"
)

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
	turns := newTurns(o.Servers)
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
		turns.add(c, sent)
		fmt.Fprintf(out, "pass  %-28s %5d sent %8s\n", c.name, total(sent), time.Since(begun).Round(time.Millisecond))
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d cases failed: %s", len(failed), len(o.cases), strings.Join(failed, ", "))
	}
	if err := turns.check(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d cases passed over least_conn, all counts 0 after each; %s\n", len(o.cases), len(o.cases), turns)
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
