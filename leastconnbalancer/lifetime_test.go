package leastconnbalancer_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// ledger returns the channel's ledger, weakly.
func (c *channel) ledger() weak.Pointer[state.Ledger] {
	for _, l := range state.Ledgers() {
		if l.Key() == c.key {
			return weak.Make(l)
		}
	}
	return weak.Pointer[state.Ledger]{}
}

// collected waits until the ledger is gone.
func (l *lab) collected(p weak.Pointer[state.Ledger]) {
	l.Helper()
	l.wait("the ledger is collected", func() bool {
		runtime.GC()
		return p.Value() == nil
	})
}

// collections runs the collector often enough for what is held by finalizers
// and cleanups to go.
func collections() {
	for range 5 {
		runtime.GC()
	}
}

// A ledger whose only holder is a stream lives, and a new channel finds the
// stream in it.
func TestLedgerHeldByLiveStream(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns[0])
	streams, _ := c.hold(3)
	c.switchAway(ns[0])
	ledger := c.ledger()
	require.Empty(t, c.snapshot().Endpoints[0].Members)
	collections()
	require.NotNil(t, ledger.Value())

	_, target, _ := strings.Cut(c.key, ":///")
	other := l.dialWith(leastconntest.ChannelConfig{Target: target}, ns...)
	require.Equal(t, ledger, other.ledger())
	other.counts(ns, 3, 0)
	_, by := other.hold(3)
	require.Equal(t, map[string]int{"b": 3}, by)
	require.NoError(t, leastconntest.EndAll(streams))
	other.counts(ns, 0, 3)
	require.NoError(t, other.Close())
	l.wait("the other's leases are back", func() bool { return other.snapshot().InFlight == 0 })
	l.collected(ledger)
}

// The last lease that is given back frees the ledger of a channel that has left
// the policy.
func TestLedgerGoesWithTheLastStream(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a")
	c := l.dial(ns...)
	streams, _ := c.hold(3)
	ledger := c.ledger()
	c.switchAway(ns...)
	for _, s := range streams {
		collections()
		require.NotNil(t, ledger.Value())
		require.NoError(t, s.End())
	}
	l.collected(ledger)
	require.NoError(t, c.Close())
}

// Channels that are closed leave neither a ledger nor memory.
func TestRegistryAndHeapReturn(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	var eps []resolver.Endpoint
	for i := range 50 {
		eps = append(eps, under(ns[i%2], fmt.Sprint(i)))
	}
	round := func() {
		c, err := leastconntest.Dial(leastconntest.ChannelConfig{
			Target:      "returns",
			Endpoints:   eps,
			DialOptions: []grpc.DialOption{aliases()},
		})
		require.NoError(t, err)
		streams, err := c.OpenN(l.ctx, 20)
		require.NoError(t, err)
		require.NoError(t, leastconntest.EndAll(streams[:10]))
		require.NoError(t, c.Close())
		leastconntest.CancelAll(streams[10:])
	}
	gone := func() bool {
		runtime.GC()
		known := slices.ContainsFunc(state.Ledgers(), func(g *state.Ledger) bool { return strings.HasSuffix(g.Key(), "/returns") })
		return !known && ns[0].OpenConns()+ns[1].OpenConns() == 0
	}
	round()
	l.wait("the first ledger is gone", gone)
	heap := heapInUse()
	for range 20 {
		round()
	}
	l.wait("the ledgers are gone", gone)
	l.wait("the heap is as it was", func() bool { return heapInUse() < heap+256<<10 })
}

// A finished stream that the application keeps holds no ledger.
func TestFinishedStreamHoldsNoLedger(t *testing.T) {
	for _, tt := range []struct {
		name  string
		leave func(*channel, ...*leastconntest.Node)
	}{
		{"channel closed", func(c *channel, _ ...*leastconntest.Node) { require.NoError(c.lab, c.Close()) }},
		{"policy switched away", (*channel).switchAway},
		{"endpoint removed", func(c *channel, ns ...*leastconntest.Node) {
			c.update(ns[1])
			require.NoError(c.lab, c.Close())
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b")
			c := l.dial(ns...)
			ledger := c.ledger()
			streams, _ := c.hold(4)
			require.NoError(t, leastconntest.EndAll(streams[:2]))
			leastconntest.CancelAll(streams[2:])
			tt.leave(c, ns...)
			l.collected(ledger)
			runtime.KeepAlive(streams)
		})
	}
}
