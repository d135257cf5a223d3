package leastconnbalancer_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// member returns the node as the only channel of the ledger has it.
func (c *channel) member(n *leastconntest.Node) state.MemberSnapshot {
	c.lab.Helper()
	for _, s := range c.snapshot().Endpoints {
		if slices.Contains(s.Addresses, n.Addr()) {
			require.Len(c.lab, s.Members, 1)
			return s.Members[0]
		}
	}
	require.Fail(c.lab, "the node is not in the ledger", n.Name())
	return state.MemberSnapshot{}
}

// A node that drains gets nothing new and keeps what it has; then it can go.
func TestD85Drain(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	w := weighings[0]
	c := l.dialWeighted(w, ns, 1, 1)
	held := c.load(ns, 3, 1)
	before := ns[0].Started()
	require.False(t, c.member(ns[0]).Draining)

	require.NoError(t, c.UpdateState(w.state(ns, 0, 1)))
	require.Equal(t, map[string]int{"b": 100}, tally(c.calls(100)))
	require.Equal(t, before, ns[0].Started())
	require.NoError(t, leastconntest.PingAll(held))
	for left := 3; left >= 0; left-- {
		m := c.member(ns[0])
		require.Equal(t, []any{true, true, uint32(0), 0.0}, []any{m.Ready, m.Draining, m.Weight, m.Score})
		require.False(t, c.member(ns[1]).Draining)
		c.counts(ns, left, 1)
		if i := slices.IndexFunc(held, func(s *leastconntest.Stream) bool { return s.Node() == "a" }); i >= 0 {
			require.NoError(t, held[i].End())
			held = slices.Delete(held, i, i+1)
		}
	}
	bg := c.background(2*time.Millisecond, 10*time.Second)
	c.update(ns[1])
	require.Equal(t, map[string]int{"b": 10}, tally(c.calls(10)))
	bg.stop(l)
	_, known := c.inFlight(ns[0])
	require.False(t, known)
	l.wait("the connection to a is closed", func() bool { return ns[0].OpenConns() == 0 })
	require.NoError(t, leastconntest.PingAll(held))
}

// When all drain, RPCs that do not wait say so, the others wait for a weight.
func TestEverythingDrains(t *testing.T) {
	for name, weights := range map[string][]uint32{"one is back": {0, 1, 0}, "all are back": {1, 1, 1}} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b", "c")
			w := weighings[0]
			c := l.dialWeighted(w, ns, 1, 1, 1)
			held := c.load(ns, 2, 1, 3)
			require.NoError(t, c.UpdateState(w.state(ns, 0, 0, 0)))
			err := c.unavailable()
			require.Equal(t, "least_conn: all 3 endpoints are draining (weight 0)", status.Convert(err).Message())

			var waiting []<-chan result
			for range 20 {
				waiting = append(waiting, l.async(func() (string, error) { return c.Unary(l.ctx, grpc.WaitForReady(true)) }))
			}
			require.Equal(t, codes.DeadlineExceeded, c.brief(grpc.WaitForReady(true)))
			require.NoError(t, leastconntest.PingAll(held))
			c.counts(ns, 2, 1, 3)

			require.NoError(t, c.UpdateState(w.state(ns, weights...)))
			for _, w := range waiting {
				r := <-w
				require.NoError(t, r.err)
				require.Contains(t, []string{"a", "b", "c"}, r.node)
				require.True(t, weights[0] > 0 || r.node == "b", "answered by %s", r.node)
			}
			require.Equal(t, "b", c.unary(), "the least loaded")
			c.counts(ns, 2, 1, 3)
			l.conns(ns, 1, 1, 1)
		})
	}
}

// A list whose endpoints drain from the start connects to them all the same.
func TestEverythingDrainsFromTheStart(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dialWeighted(weighings[0], ns, 0, 0)
	require.ErrorContains(t, c.unavailable(), "all 2 endpoints are draining")
	require.NoError(t, c.UpdateState(weighings[0].state(ns, 1, 0)))
	require.Equal(t, "a", c.unary())
	l.conns(ns, 1, 1)
}

// A node that drains and fails is no reason why RPCs fail: that is what the
// others say, or that all drain.
func TestDrainingNodesGiveNoError(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	d := newDialer()
	for _, n := range ns {
		d.fail(n, errors.New("no way to "+n.Name()))
	}
	c := l.unused(leastconntest.ChannelConfig{DialOptions: dialOptions(d)})
	w := weighings[0]
	require.NoError(t, c.UpdateState(w.state(ns, 1, 0)))
	c.Connect()
	for range 20 {
		tried := d.attempts(ns[1])
		l.wait("b has failed again", func() bool { return d.attempts(ns[1]) > tried+1 })
		require.ErrorContains(t, c.unavailable(), "no way to a")
	}
	require.NoError(t, c.UpdateState(w.state(ns, 0, 0)))
	require.ErrorContains(t, c.unavailable(), "all 2 endpoints are draining")
	require.NoError(t, c.UpdateState(w.state(ns, 0, 1)))
	require.ErrorContains(t, c.unavailable(), "no way to b")
}
