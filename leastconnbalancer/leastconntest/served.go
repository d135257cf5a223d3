package leastconntest

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

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
