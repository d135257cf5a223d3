package leastconnbalancer_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

// lab runs real nodes and channels for one test, and ends them with it.
type lab struct {
	*testing.T
	ctx context.Context
}

func newLab(t *testing.T) *lab {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	l := &lab{T: t, ctx: ctx}
	t.Cleanup(func() {
		cancel()
		l.wait("all leases of ended RPCs are back", func() bool {
			for _, s := range state.Snapshots() {
				if s.InFlight != 0 {
					return false
				}
			}
			return true
		})
	})
	return l
}

// nodes starts a node for each name.
func (l *lab) nodes(names ...string) []*leastconntest.Node {
	l.Helper()
	ns, err := leastconntest.StartNodes(leastconntest.Options{}, names...)
	require.NoError(l, err)
	l.Cleanup(func() { leastconntest.CloseNodes(ns...) })
	return ns
}

func (l *lab) node(opts leastconntest.Options) *leastconntest.Node {
	l.Helper()
	n, err := leastconntest.StartNode(opts)
	require.NoError(l, err)
	l.Cleanup(n.Close)
	return n
}

// dial opens a channel whose first list is the nodes, and waits until it can
// use all of them.
func (l *lab) dial(nodes ...*leastconntest.Node) *channel {
	l.Helper()
	return l.dialWith(leastconntest.ChannelConfig{}, nodes...)
}

func (l *lab) dialWith(cfg leastconntest.ChannelConfig, nodes ...*leastconntest.Node) *channel {
	l.Helper()
	if cfg.Endpoints == nil {
		cfg.Endpoints = leastconntest.Endpoints(nodes...)
	}
	ch := l.unused(cfg)
	ch.Connect()
	ch.waitReady(nodes...)
	return ch
}

// dialAs is dialWith for a channel whose load is in the ledger of the key.
func (l *lab) dialAs(key string, cfg leastconntest.ChannelConfig, nodes ...*leastconntest.Node) *channel {
	l.Helper()
	if cfg.Endpoints == nil {
		cfg.Endpoints = leastconntest.Endpoints(nodes...)
	}
	ch := l.dialWith(cfg)
	ch.key = key
	ch.waitReady(nodes...)
	return ch
}

// unused makes a channel that does nothing yet.
func (l *lab) unused(cfg leastconntest.ChannelConfig) *channel {
	l.Helper()
	c, err := leastconntest.Dial(cfg)
	require.NoError(l, err)
	l.Cleanup(func() { c.Close() })
	return &channel{Channel: c, lab: l, key: c.Conn().CanonicalTarget()}
}

// wait fails the test when the condition does not come true.
func (l *lab) wait(what string, condition func() bool) {
	l.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	require.NoError(l, leastconntest.WaitFor(ctx, what, condition))
}

// channel is a channel of a lab, with the ledger that its load is in.
type channel struct {
	*leastconntest.Channel
	lab *lab
	key string // the resource key
}

// update lists exactly the nodes and waits until all of them can be used.
func (c *channel) update(nodes ...*leastconntest.Node) {
	c.lab.Helper()
	require.NoError(c.lab, c.UpdateNodes(nodes...))
	c.waitReady(nodes...)
}

// hold opens n streams, one after another, and returns where they went.
func (c *channel) hold(n int) (streams []*leastconntest.Stream, by map[string]int) {
	c.lab.Helper()
	streams, err := c.OpenN(c.lab.ctx, n)
	require.NoError(c.lab, err)
	return streams, leastconntest.Counts(streams)
}

// unary makes a unary RPC and returns who answered.
func (c *channel) unary() string {
	c.lab.Helper()
	name, err := c.Unary(c.lab.ctx)
	require.NoError(c.lab, err)
	return name
}

// snapshot returns the channel's ledger and checks its invariants.
func (c *channel) snapshot() state.Snapshot {
	c.lab.Helper()
	for _, l := range state.Ledgers() {
		if l.Key() == c.key {
			require.NoError(c.lab, l.Check())
			return l.Snapshot()
		}
	}
	return state.Snapshot{}
}

// inFlight returns the ledger's count for the node, and whether it knows it.
func (c *channel) inFlight(n *leastconntest.Node) (int, bool) {
	c.lab.Helper()
	for _, s := range c.snapshot().Endpoints {
		for _, a := range s.Addresses {
			if a == n.Addr() {
				return int(s.InFlight), true
			}
		}
	}
	return 0, false
}

// waitReady waits until the channel's ledger has the nodes as ready members.
func (c *channel) waitReady(nodes ...*leastconntest.Node) {
	c.lab.Helper()
	for _, n := range nodes {
		c.lab.wait(n.Name()+" is ready", func() bool { return c.ready(n) })
	}
}

// ready reports whether a channel of the ledger has the node as a ready member.
func (c *channel) ready(n *leastconntest.Node) bool {
	c.lab.Helper()
	for _, s := range c.snapshot().Endpoints {
		for _, a := range s.Addresses {
			if a != n.Addr() {
				continue
			}
			for _, m := range s.Members {
				if m.Ready {
					return true
				}
			}
		}
	}
	return false
}

// members returns how many rosters of the ledger have the node as a ready
// member: one for each channel that can use it.
func (c *channel) members(n *leastconntest.Node) int {
	c.lab.Helper()
	ready := 0
	for _, s := range c.snapshot().Endpoints {
		if !slices.Contains(s.Addresses, n.Addr()) {
			continue
		}
		for _, m := range s.Members {
			if m.Ready {
				ready++
			}
		}
	}
	return ready
}

// waitMembers waits until each of the nodes has so many ready members.
func (c *channel) waitMembers(want int, nodes ...*leastconntest.Node) {
	c.lab.Helper()
	for _, n := range nodes {
		c.lab.wait("members of "+n.Name(), func() bool { return c.members(n) == want })
	}
}

// counts checks the in-flight counts of the nodes, in their order.
func (c *channel) counts(nodes []*leastconntest.Node, want ...int) {
	c.lab.Helper()
	got := make([]int, len(nodes))
	for i, n := range nodes {
		got[i], _ = c.inFlight(n)
	}
	require.Equal(c.lab, want, got, "in flight by node")
}

// served checks what the nodes handle now, in their order.
func (l *lab) served(nodes []*leastconntest.Node, want ...int) {
	l.Helper()
	for i, n := range nodes {
		require.NoError(l, n.WaitLive(l.ctx, want[i]), "streams at node %s", n.Name())
	}
}
