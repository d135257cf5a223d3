package leastconnbalancer_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

func TestD65EmptyList(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns...)
	held := c.load(ns, 3, 2)

	empty := map[string]resolver.State{
		"nil":            {},
		"endpoints":      {Endpoints: []resolver.Endpoint{}},
		"bare endpoints": {Endpoints: []resolver.Endpoint{{}, {}}},
	}
	for name, s := range empty {
		require.ErrorIs(t, c.UpdateState(s), balancer.ErrBadResolverState, name)
		require.ErrorContains(t, c.unavailable(), "zero addresses", name)
		require.NoError(t, leastconntest.PingAll(held), name)
		c.counts(ns, 3, 2)

		c.update(ns...)
		c.counts(ns, 3, 2)
		s, err := c.Open(l.ctx)
		require.NoError(t, err)
		require.Equal(t, "b", s.Node(), name)
		s.Cancel()
	}
	require.NoError(t, leastconntest.EndAll(held))
	c.counts(ns, 0, 0)
}

func TestD65AlternationsLeaveNothing(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns...)
	held := c.load(ns, 3, 2)
	alternate := func() {
		require.ErrorIs(t, c.UpdateNodes(), balancer.ErrBadResolverState)
		require.NoError(t, c.UpdateNodes(ns...))
	}
	alternate()
	c.waitReady(ns...)
	l.wait("the first connections carry streams, the second ones are new", func() bool {
		return ns[0].OpenConns() == 2 && ns[1].OpenConns() == 2
	})
	goroutines := runtime.NumGoroutine()

	for i := range 100 {
		alternate()
		if i%10 == 0 {
			c.waitReady(ns...)
		}
	}
	c.waitReady(ns...)
	c.counts(ns, 3, 2)
	require.Len(t, c.snapshot().Endpoints, 2)
	l.atMostGoroutines(goroutines + 10)
	l.wait("only those connections are left", func() bool {
		return ns[0].OpenConns() == 2 && ns[1].OpenConns() == 2
	})
	require.NoError(t, leastconntest.PingAll(held))
}

func TestD65EmptyAtFirst(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a")
	c := l.unused(leastconntest.ChannelConfig{Endpoints: []resolver.Endpoint{}})
	require.ErrorContains(t, c.unavailable(), "zero addresses")
	c.update(ns...)
	require.Equal(t, "a", c.unary())
}

func TestD66RepeatsAreNotWeights(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	a, b, cc := ns[0].Endpoint(), ns[1].Endpoint(), ns[2].Endpoint()
	twice := resolver.Endpoint{Addresses: append(ns[1].Endpoint().Addresses, b.Addresses...)}
	c := l.dialWith(leastconntest.ChannelConfig{
		Endpoints: []resolver.Endpoint{a, b, lcresolver.SetWeight(b, 5), twice, cc},
	}, ns...)
	c.hold(12)
	c.counts(ns, 4, 4, 4)

	require.NoError(t, c.Update(b, cc, lcresolver.SetWeight(b, 5), a, a))
	c.hold(12)
	c.counts(ns, 8, 8, 8)
	require.Len(t, c.snapshot().Endpoints, 3)
	for _, n := range ns {
		require.Equal(t, 1, n.Conns(), "connections to %s", n.Name())
	}
}

func TestD70RollingReplacement(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d")
	before, after := ns[:2], ns[2:]
	c := l.dial(before...)
	held, _ := c.hold(6)
	c.counts(before, 3, 3)

	bg := c.background(10*time.Millisecond, 10*time.Second)
	l.wait("RPCs run", func() bool { return bg.done.Load() > 10 })
	require.NoError(t, c.UpdateNodes(after...))
	c.waitReady(after...)
	more, by := c.hold(6)
	require.Equal(t, 6, by["c"]+by["d"], "streams by node: %v", by)
	seen := bg.done.Load()
	l.wait("RPCs run on", func() bool { return bg.done.Load() > seen+20 })
	bg.stop(l)

	require.NoError(t, leastconntest.PingAll(held))
	c.counts(ns, 3, 3, by["c"], by["d"])
	require.NoError(t, leastconntest.EndAll(held[:5]))
	require.Len(t, c.snapshot().Endpoints, 3, "one of those that left still has a stream")
	require.NoError(t, held[5].End())
	require.Len(t, c.snapshot().Endpoints, 2)
	for _, n := range before {
		_, known := c.inFlight(n)
		require.False(t, known, "%s is in the ledger", n.Name())
	}
	require.NoError(t, leastconntest.EndAll(more))
}

func TestD70ReplacedAgainAndAgain(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d")
	c := l.dial(ns[:2]...)
	bg := c.background(time.Millisecond, 10*time.Second)
	for i := range 40 {
		now := ns[i%2*2 : i%2*2+2]
		c.update(now...)
		seen := bg.done.Load()
		l.wait("RPCs run", func() bool { return bg.done.Load() > seen+2 })
	}
	bg.stop(l)
	require.Len(t, c.snapshot().Endpoints, 2)
}
