// Package leastconntest offers real gRPC nodes on loopback that hold RPCs and count what they see, and channels whose
// resolver is driven by hand. Tests, examples and scenario runners build on it.
//
// A [Node] serves grpc.testing.TestService and grpc.health.v1.Health over TCP. It can age its connections
// ([Node.GoAway]), die and come back on its address ([Node.Stop], [Node.Restart]), fail, delay, hold and end RPCs. A
// [Channel] is a ClientConn that is told its endpoints with [Channel.Update]; a [Stream] is an open bidirectional RPC
// that knows which node serves it. A [Proxy] stands between them and resets, silences, slows or refuses connections; a
// [Recorder] keeps the metrics that channels record.
//
// The package knows nothing about any load balancing policy: it names least_conn in the default service config, and
// whoever dials must have linked that policy or must give another config. Only [WaitIdle] looks at that policy's ledgers.
// Nothing in it waits by sleeping; whatever takes time is polled for with [WaitFor].
//
// It links the client side of health checking (google.golang.org/grpc/health), so a program that uses it cannot show
// what happens without that import.
package leastconntest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// DefaultTimeout bounds a wait whose context has no deadline.
const DefaultTimeout = time.Minute

const pollInterval = time.Millisecond

// WaitFor polls condition until it holds, ctx ends, or, if ctx has no deadline, DefaultTimeout is over. The error says
// what was waited for.
func WaitFor(ctx context.Context, what string, condition func() bool) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	start := time.Now()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("leastconntest: waited %v for %s: %w", time.Since(start).Round(time.Millisecond), what, ctx.Err())
		}
	}
	return nil
}

// bounded gives ctx a deadline if it has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, DefaultTimeout)
}

// WaitServed connects, waits until each of nodes has a connection, and then probes with unary RPCs, one at a time, until
// each has answered one: only then can the channel's policy use it. When it returns, no probe is under way. Failed probes
// are repeated. Nodes are told apart by name.
//
// It needs no knowledge of the policy, but the policy must be willing to send the probes there. An exact least-loaded
// policy sends none to a node that holds more streams than another one, so name only the nodes that hold the fewest, such
// as one that just joined.
func (c *Channel) WaitServed(ctx context.Context, nodes ...*Node) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	c.Connect()
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name()
		if err := WaitFor(ctx, "a connection to node "+n.Name(), func() bool { return n.OpenConns() > 0 }); err != nil {
			return err
		}
	}
	return c.WaitAnswered(ctx, names...)
}

// WaitAnswered is WaitServed for nodes of which only the names are known, as when they run in other processes.
func (c *Channel) WaitAnswered(ctx context.Context, names ...string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	missing := slices.Clone(names)
	var last error
	probed := func() bool {
		if len(missing) == 0 {
			return true
		}
		name, err := c.Unary(ctx)
		if err != nil {
			last = err
			return false
		}
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == name })
		return len(missing) == 0
	}
	err := WaitFor(ctx, "answers from nodes "+strings.Join(names, ", "), probed)
	if err == nil {
		return nil
	}
	if last != nil {
		return fmt.Errorf("%w; none from %s; the last failed probe said: %w", err, strings.Join(missing, ", "), last)
	}
	return fmt.Errorf("%w; none from %s", err, strings.Join(missing, ", "))
}
