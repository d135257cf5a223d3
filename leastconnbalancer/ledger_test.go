package leastconnbalancer_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// snapshot returns the channel's ledger and checks its invariants.
func (c *channel) snapshot() state.Snapshot {
	c.env.Helper()
	l := ledgerOf(c.key)
	if l == nil {
		return state.Snapshot{}
	}
	require.NoError(c.env, l.Check())
	return l.Snapshot()
}

// watch looks at the channel's ledger again and again until stop is called,
// which fails the test if an invariant or the check did not hold at any time.
func (c *channel) watch(check func(state.Snapshot) error) (stop func()) {
	done, result := make(chan struct{}), make(chan error, 1)
	look := func() error {
		l := ledgerOf(c.key)
		if l == nil {
			return fmt.Errorf("there is no ledger %q", c.key)
		}
		if err := l.Check(); err != nil {
			return err
		}
		return check(l.Snapshot())
	}
	go func() {
		tick := time.NewTicker(500 * time.Microsecond)
		defer tick.Stop()
		err := look()
		for ; err == nil; err = look() {
			select {
			case <-tick.C:
				continue
			case <-done:
			}
			break
		}
		result <- err
	}()
	return func() {
		c.env.Helper()
		close(done)
		require.NoError(c.env, <-result)
	}
}

// valid is a check for watch that asks for the invariants alone.
func valid(state.Snapshot) error { return nil }

// atMost is a check for watch: no node has more than limit in flight.
func atMost(limit int64) func(state.Snapshot) error {
	return func(s state.Snapshot) error {
		for _, n := range s.Endpoints {
			if n.InFlight > limit {
				return fmt.Errorf("node %v has %d in flight, more than %d", n.Addresses, n.InFlight, limit)
			}
		}
		return nil
	}
}

// of returns what the channel's ledger knows of the address, nothing if it does
// not know it.
func (c *channel) of(addr string) state.EndpointSnapshot {
	c.env.Helper()
	for _, s := range c.snapshot().Endpoints {
		if slices.Contains(s.Addresses, addr) {
			return s
		}
	}
	return state.EndpointSnapshot{}
}

// inFlight returns the ledger's count for the node, and whether it knows it.
func (c *channel) inFlight(n *leastconntest.Node) (int, bool) {
	c.env.Helper()
	s := c.of(n.Addr())
	return int(s.InFlight), s.Addresses != nil
}

// counts checks the in-flight counts of the nodes, in their order.
func (c *channel) counts(nodes []*leastconntest.Node, want ...int) {
	c.env.Helper()
	got := make([]int, len(nodes))
	for i, n := range nodes {
		got[i], _ = c.inFlight(n)
	}
	require.Equal(c.env, want, got, "in flight by node")
}

// readyMembers is how many endpoint sets of the ledger have the address as a
// ready member: one for each channel that can use it.
func (c *channel) readyMembers(addr string) (n int) {
	c.env.Helper()
	for _, m := range c.of(addr).Members {
		if m.Ready {
			n++
		}
	}
	return n
}

// ready reports whether a channel of the ledger can use the node.
func (c *channel) ready(n *leastconntest.Node) bool { return c.readyMembers(n.Addr()) > 0 }

// waitReady waits until the channel can use the nodes.
func (c *channel) waitReady(nodes ...*leastconntest.Node) {
	c.env.Helper()
	for _, n := range nodes {
		c.env.wait(n.Name()+" is ready", func() bool { return c.ready(n) })
	}
}

// waitMembers waits until each of the nodes has so many ready members.
func (c *channel) waitMembers(want int, nodes ...*leastconntest.Node) {
	c.env.Helper()
	for _, n := range nodes {
		c.env.wait("members of "+n.Name(), func() bool { return c.readyMembers(n.Addr()) == want })
	}
}

// member returns the node as the only channel of the ledger has it.
func (c *channel) member(n *leastconntest.Node) state.MemberSnapshot {
	c.env.Helper()
	s := c.of(n.Addr())
	require.Len(c.env, s.Members, 1, "of node %s", n.Name())
	return s.Members[0]
}

// at returns the ledger's endpoint with exactly the endpoint's addresses.
func (c *channel) at(ep resolver.Endpoint) (state.EndpointSnapshot, bool) {
	c.env.Helper()
	var want []string
	for _, a := range ep.Addresses {
		want = append(want, a.Addr)
	}
	slices.Sort(want)
	s := c.of(want[0])
	return s, slices.Equal(s.Addresses, want)
}

func (c *channel) readyAt(ep resolver.Endpoint) bool {
	c.env.Helper()
	s, ok := c.at(ep)
	return ok && slices.ContainsFunc(s.Members, func(m state.MemberSnapshot) bool { return m.Ready })
}

// inFlightAt returns the endpoint's count, -1 when the ledger does not know it.
func (c *channel) inFlightAt(ep resolver.Endpoint) int {
	c.env.Helper()
	if s, ok := c.at(ep); ok {
		return int(s.InFlight)
	}
	return -1
}
