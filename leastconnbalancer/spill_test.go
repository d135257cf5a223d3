package leastconnbalancer_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// What the first level has no room for goes to the next one, and comes back
// when there is room again.
func TestD94SpillsAtTheCap(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d")
	c := l.dialLevels(guarded(capped(2)), levels(ns[:2], ns[2:3], ns[3:]), ns...)
	held, by := c.hold(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
	spilt, by := c.hold(3)
	require.Equal(t, map[string]int{"c": 2, "d": 1}, by)
	c.counts(ns, 2, 2, 2, 1)

	held = endOne(t, held, ns[1])
	again, by := c.hold(2)
	require.Equal(t, map[string]int{"b": 1, "d": 1}, by)
	c.counts(ns, 2, 2, 2, 2)
	rpcs := c.line(2)
	endOne(t, spilt, ns[2])
	for _, rpc := range rpcs {
		require.Equal(t, result{node: "c"}, <-rpc, "the only room")
	}
	endOne(t, held, ns[0])
	require.Equal(t, "a", c.unary())
	require.NoError(t, leastconntest.PingAll(again))
	l.conns(ns, 1, 1, 1, 1)
}

// A level that nobody is at a cap of is waited for as ever: RPCs spill for want
// of room alone.
func TestOnlyFullLevelsSpill(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	eps := levels(ns[:1], ns[1:])
	eps[0] = lcresolver.SetMaxInFlight(eps[0], 1)
	c := l.dialLevels(leastconntest.ChannelConfig{}, eps, ns...)
	_, by := c.hold(3)
	require.Equal(t, map[string]int{"a": 1, "b": 2}, by)

	eps = levels(ns[1:], ns[:1])
	require.NoError(t, c.Update(eps...))
	_, by = c.hold(3)
	require.Equal(t, map[string]int{"b": 3}, by)
	c.counts(ns, 1, 5)
}

// RPCs that wait find room on any level, the first before the others.
func TestWaitersTakeTheHighestLevel(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dialLevels(guarded(capped(1)), levels(ns[:1], ns[1:]), ns...)
	held, _ := c.hold(3)
	ns[0].HoldUnary(true)
	rpcs := c.line(2)
	held = endOne(t, held, ns[0])
	require.NoError(t, ns[0].WaitLive(l.ctx, 1))
	c.waits(1)
	endOne(t, held, ns[2])
	require.Equal(t, result{node: "c"}, <-rpcs[1])
	ns[0].ReleaseUnary()
	require.Equal(t, result{node: "a"}, <-rpcs[0])
}

// When the level that RPCs wait at fails, the next one is where they wait.
func TestWaitersGoOnToTheNextLevel(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	cfg := guarded(leastconnbalancer.Config{MaxInFlight: 1})
	cfg.DialOptions = quickly().DialOptions
	c := l.dialLevels(cfg, levels(ns[:1], ns[1:]), ns...)
	held, by := c.hold(2)
	require.Equal(t, map[string]int{"a": 1, "b": 1}, by)
	rpcs := c.line(2)
	c.stop(ns[0])
	require.Error(t, held[0].Wait())
	c.waits(2)
	require.NoError(t, held[1].End())
	for _, rpc := range rpcs {
		require.Equal(t, result{node: "b"}, <-rpc)
	}
	require.NoError(t, ns[0].Restart())
	l.wait("a is used again", func() bool { return c.unary() == "a" })
}

// A later attempt goes to an untried node with room, on any level; when there is
// none, it starts over rather than wait.
func TestRetryFindsRoom(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	cfg := retrying(2)
	cfg.Endpoints = levels(ns[:2], ns[2:])
	for i := range cfg.Endpoints {
		cfg.Endpoints[i] = lcresolver.SetMaxInFlight(cfg.Endpoints[i], 2)
	}
	c := l.dialParent(&parent{}, cfg, ns...)
	c.load(ns[:2], 1, 2)
	failing(ns[0])
	require.Equal(t, "c", c.unary(), "b is full")
	held, by := c.hold(2)
	require.Equal(t, map[string]int{"c": 2}, by)
	before := started(ns)
	c.failed()
	require.Equal(t, []int{2, 0, 0}, started(ns, before...), "attempts by node")

	ns[0].SetFail(codes.OK)
	c.hold(1)
	c.counts(ns, 2, 2, 2)
	rpc := c.line(1)
	endOne(t, held, ns[2])
	require.Equal(t, result{node: "c"}, <-rpc[0])
}

// Attempts that fail, wait and start over: each is a pick and a Done, and no cap
// is exceeded.
func TestRetriesUnderCaps(t *testing.T) {
	l := newLab(t)
	log := &attemptLog{seen: map[string][]string{}}
	var ns []*leastconntest.Node
	var peaks []*peak
	for _, name := range names(4) {
		p := &peak{}
		opts := append([]grpc.ServerOption{log.server(name)}, p.options()...)
		ns, peaks = append(ns, l.node(leastconntest.Options{Name: name, ServerOptions: opts})), append(peaks, p)
	}
	p := &parent{}
	cfg := retrying(4)
	for _, n := range ns {
		cfg.Endpoints = append(cfg.Endpoints, lcresolver.SetMaxInFlight(n.Endpoint(), 2))
	}
	c := l.dialParent(p, cfg, ns...)
	stop := c.watch(atMost(2))
	var callers sync.WaitGroup
	for range 40 {
		callers.Go(func() {
			for range 10 {
				if _, err := c.Unary(l.ctx); err != nil {
					assert.ErrorContains(t, err, "most fail")
				}
			}
		})
	}
	callers.Wait()
	stop()
	attempts := 0
	for i, n := range ns {
		attempts += n.Started()
		require.LessOrEqual(t, peaks[i].most.Load(), int64(2))
	}
	require.EqualValues(t, attempts, p.picks.Load(), "picks")
	require.EqualValues(t, attempts, p.dones.Load(), "Dones")
	require.Positive(t, c.snapshot().EndpointSets[0].Queued, "RPCs that waited")
	c.waits(0)
	c.counts(ns, 0, 0, 0, 0)
}
