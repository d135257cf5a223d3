package leastconnbalancer_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
	"github.com/leastconn/grpc-leastconn/state"
)

// ledger returns the channel's ledger, weakly.
func (c *channel) ledger() weak.Pointer[state.Ledger] {
	c.env.Helper()
	l := ledgerOf(c.key)
	require.NotNil(c.env, l)
	return weak.Make(l)
}

// collected waits until the ledger is gone. No other test may run, since whoever
// looks for a ledger holds all of them for a moment.
func (e *env) collected(p weak.Pointer[state.Ledger]) {
	e.Helper()
	e.wait("the ledger is collected", func() bool {
		runtime.GC()
		return p.Value() == nil
	})
}

// heapInUse is what is reachable now.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A ledger whose only holder is a stream lives, a new channel finds the stream in
// it, and it goes with the last of both.
func TestLedgerHeldByLiveStreams(t *testing.T) {
	e := newEnv(t)
	ns := e.nodes("a", "b")
	c := e.dial(ns[0])
	streams, _ := c.hold(3)
	require.NoError(t, c.UpdateConfig(roundRobin, ns[0].Endpoint()))
	e.wait("the policy is closed", func() bool { return len(c.snapshot().Endpoints[0].Members) == 0 })
	ledger := c.ledger()
	for range 5 { // often enough for what finalizers and cleanups hold to go
		runtime.GC()
	}
	require.NotNil(t, ledger.Value())
	_, target, _ := strings.Cut(c.key, ":///")
	other := e.dialWith(leastconntest.ChannelConfig{Target: target}, ns...)
	require.Equal(t, ledger, other.ledger())
	_, by := other.hold(3)
	require.Equal(t, map[string]int{"b": 3}, by)
	require.NoError(t, other.Close())
	for _, s := range streams {
		runtime.GC()
		require.NotNil(t, ledger.Value())
		require.NoError(t, s.End())
	}
	e.collected(ledger)
}

// Finished streams that the application keeps, with the interceptors, too, what
// RPCs have tried, and RPCs that waited for a level hold no ledger.
func TestWhatHoldsNoLedger(t *testing.T) {
	for name, cfg := range map[string]leastconntest.ChannelConfig{
		"plain": retrying(3), "with the interceptors": intercepted(retrying(3)),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			ns := e.nodes("a", "b", "c")
			c := e.dialWith(cfg, ns...)
			ledger := c.ledger()
			streams, _ := c.hold(6)
			require.NoError(t, leastconntest.EndAll(streams[:3]))
			c.update(ns[:2]...)
			leastconntest.CancelAll(streams[3:])
			failing(ns...)
			for range 5 {
				c.failed()
				_, err := c.Open(e.ctx)
				require.Error(t, err)
			}
			require.NoError(t, c.Close())
			e.collected(ledger)
			runtime.KeepAlive(streams)
		})
	}
	t.Run("closed while a level is waited for", func(t *testing.T) {
		e := newEnv(t)
		ns := e.nodes("a", "b")
		d := newDialer()
		d.shut(ns[0])
		cfg := guarded(priorityFailover(longest))
		cfg.Endpoints, cfg.DialOptions = levels(ns[:1], ns[1:]), d.options(0)
		c := e.dialWith(cfg, ns[1])
		waiting := e.async(func() (string, error) { return c.Unary(e.ctx) })
		ledger := c.ledger()
		require.NoError(t, c.Close())
		require.Error(t, (<-waiting).err)
		require.Zero(t, ns[1].Started())
		e.collected(ledger)
	})
}

// churn gives the channel updates of ten endpoints each that were never seen
// before, all of them on the node, and returns the last ones, ready.
func (c *channel) churn(n *leastconntest.Node, from, updates int) []resolver.Endpoint {
	c.env.Helper()
	var last []resolver.Endpoint
	for i := range updates {
		last = nil
		for j := range 10 {
			last = append(last, under(n, fmt.Sprint(from+i, "-", j)))
		}
		require.NoError(c.env, c.Update(last...))
	}
	for _, ep := range last {
		c.env.wait("the last list is ready", func() bool { return c.readyAt(ep) })
	}
	return last
}

// Endpoints that come and go leave nothing, those with a stream are
// known until it ends; nor do channels that are closed.
func TestChurnLeavesNothing(t *testing.T) {
	e := newEnv(t)
	n := e.nodes("a")[0]
	cfg := leastconntest.ChannelConfig{Target: t.Name(), Endpoints: []resolver.Endpoint{}, DialOptions: []grpc.DialOption{aliases()}}
	c := e.dialWith(cfg)
	old := c.churn(n, 0, 20)
	streams, _ := c.hold(10)
	last := c.churn(n, 20, 1)
	require.Len(t, c.snapshot().Endpoints, 20)
	for _, ep := range old {
		require.Equal(t, 1, c.inFlightAt(ep))
	}
	require.NoError(t, leastconntest.EndAll(streams))
	settled := func() bool { return n.OpenConns() == len(last) }
	e.wait("the node has ten connections", settled)
	require.Len(t, c.snapshot().Endpoints, 10)
	heap, goroutines := heapInUse(), runtime.NumGoroutine()
	last = c.churn(n, 21, 50)
	for range 10 {
		require.ErrorIs(t, c.Update(), balancer.ErrBadResolverState)
		require.NoError(t, c.Update(last...))
		require.NoError(t, c.UpdateConfig(roundRobin, last...))
		require.NoError(t, c.UpdateConfig(leastconntest.DefaultServiceConfig, last...))
	}
	for i := range 20 {
		cfg.Endpoints = last
		other := e.unused(cfg)
		other.Connect()
		if i%2 == 0 {
			other.hold(1)
		}
		require.NoError(t, other.Close())
	}
	e.wait("the node has ten connections", settled)
	require.Len(t, c.snapshot().Endpoints, 10)
	require.Len(t, c.snapshot().EndpointSets, 1)
	e.atMostGoroutines(goroutines)
	e.wait("the heap has grown by less than 1 MB", func() bool { return heapInUse() < heap+1<<20 })
}

// Levels that have gone leave nothing, however many there were.
func TestLevelsThatWentLeaveNothing(t *testing.T) {
	e := newEnv(t)
	ns := e.nodes("a")
	c := e.dial(ns...)
	c.hold(2)
	move := func(from, to uint32) {
		for p := from; p < to; p++ {
			require.NoError(t, c.Update(lcresolver.SetPriority(ns[0].Endpoint(), p)))
		}
	}
	move(0, 100)
	heap := heapInUse()
	move(100, 5000)
	e.wait("the heap has grown by less than 256 KB", func() bool { return heapInUse() < heap+256<<10 })
	require.EqualValues(t, 4999, c.member(ns[0]).Priority)
	c.counts(ns, 2)
	e.conns(ns, 1)
}

// longest is the longest that RPCs may wait for a level.
const longest = 3600e9
