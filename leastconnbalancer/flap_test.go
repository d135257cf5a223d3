package leastconnbalancer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// An endpoint that leaves the list and returns is still known by its streams.
func TestD05LeaveAndReturn(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns...)
	streams, by := c.hold(8)
	require.Equal(t, map[string]int{"a": 4, "b": 4}, by)
	stop := c.steady(ns[0], 4)

	c.update(ns[1])
	require.False(t, c.ready(ns[0]))
	require.NoError(t, leastconntest.PingAll(streams))
	l.served(ns, 4, 4)

	c.update(ns...)
	stop()
	_, by = c.hold(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
	c.counts(ns, 6, 6)
	l.served(ns, 6, 6)
}

// Again and again, with streams that end while their endpoint is away.
func TestRemovalAndReturnWithLiveStreams(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns...)
	streams, _ := c.hold(12)
	for left := 5; left > 0; left-- {
		c.update(ns[1])
		c.counts(ns, left+1, 6)
		for i, s := range streams {
			if s.Node() == "a" {
				require.NoError(t, s.End())
				streams = append(streams[:i], streams[i+1:]...)
				break
			}
		}
		c.update(ns...)
		c.counts(ns, left, 6)
	}
	require.NoError(t, leastconntest.PingAll(streams))
	_, by := c.hold(5)
	require.Equal(t, map[string]int{"a": 5}, by)
	c.counts(ns, 6, 6)
	l.served(ns, 6, 6)
}

// Streams on a connection that its server has aged out count on.
func TestD13MaxConnectionAge(t *testing.T) {
	l := newLab(t)
	ageing := l.node(leastconntest.Options{Name: "a", ServerOptions: []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 300 * time.Millisecond}),
	}})
	ns := []*leastconntest.Node{ageing, l.node(leastconntest.Options{Name: "b"})}
	c := l.dial(ns[0])
	streams, _ := c.hold(6)
	stop := c.steady(ns[0], 6)
	c.update(ns...)
	l.wait("a has aged twice", func() bool { return ns[0].Conns() >= 3 && c.ready(ns[0]) })
	stop()
	_, by := c.hold(6)
	require.Equal(t, map[string]int{"b": 6}, by)
	require.NoError(t, leastconntest.PingAll(streams))
	c.counts(ns, 6, 6)
	l.served(ns, 6, 6)
}

// Each GOAWAY leaves the streams where they are, and counted.
func TestGoAwayKeepsCounts(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns[0])
	streams, _ := c.hold(6)
	stop := c.steady(ns[0], 6)
	for i := range 5 {
		ns[0].GoAway()
		l.wait("a has a new connection", func() bool { return ns[0].Conns() == i+2 })
		c.waitReady(ns[0])
		require.NoError(t, leastconntest.PingAll(streams))
	}
	c.update(ns...)
	stop()
	_, by := c.hold(6)
	require.Equal(t, map[string]int{"b": 6}, by)

	require.NoError(t, leastconntest.EndAll(streams))
	c.counts(ns, 0, 6)
	_, by = c.hold(6)
	require.Equal(t, map[string]int{"a": 6}, by)
	l.served(ns, 6, 6)
}

// Calls that a GOAWAY meets half-way are picked again; none fails, each pick is
// given back.
func TestGoAwayUnderCalls(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	p := &parent{}
	c := l.dialParent(p, leastconntest.ChannelConfig{}, ns...)
	stop := c.watch(valid)
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			for ctx.Err() == nil {
				_, err := c.Unary(l.ctx)
				assert.NoError(t, err)
			}
		})
	}
	for i := range 20 {
		before := ns[i%2].Conns()
		ns[i%2].GoAway()
		l.wait("a new connection", func() bool { return ns[i%2].Conns() > before })
	}
	cancel()
	callers.Wait()
	stop()
	require.Equal(t, p.picks.Load(), p.dones.Load(), "Dones for picks")
	c.counts(ns, 0, 0)
}

// A host that comes and goes says nothing about the load of the others.
func TestD15OneHostFlaps(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dialWith(quickly(), ns[0])
	c.hold(6)
	stop := c.steady(ns[0], 6)
	c.update(ns...)
	for range 5 {
		ns[2].Stop()
		l.wait("c is lost", func() bool { return !c.ready(ns[2]) })
		require.NoError(t, ns[2].Restart())
		c.waitReady(ns[2])
	}
	stop()
	_, by := c.hold(6)
	require.Equal(t, map[string]int{"b": 3, "c": 3}, by)
	c.counts(ns, 6, 3, 3)
	l.served(ns, 6, 3, 3)
}

// A node that its health service takes out of use keeps its streams, and its
// load when it is back.
func TestHealthFlipsKeepCounts(t *testing.T) {
	const checked = `{"loadBalancingConfig":[{"least_conn":{}}],"healthCheckConfig":{"serviceName":""}}`
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dialWith(leastconntest.ChannelConfig{ServiceConfig: checked}, ns...)
	streams, _ := c.hold(4)
	stop := c.steady(ns[0], 2)
	for range 5 {
		ns[0].SetServing(false)
		l.wait("a is out of use", func() bool { return !c.ready(ns[0]) })
		require.Equal(t, "b", c.unary())
		require.NoError(t, leastconntest.PingAll(streams))
		ns[0].SetServing(true)
		c.waitReady(ns[0])
	}
	ns[0].SetServing(false)
	l.wait("a is out of use", func() bool { return !c.ready(ns[0]) })
	_, by := c.hold(3)
	require.Equal(t, map[string]int{"b": 3}, by)
	ns[0].SetServing(true)
	c.waitReady(ns[0])
	stop()
	_, by = c.hold(3)
	require.Equal(t, map[string]int{"a": 3}, by)
	c.counts(ns, 5, 5)
	l.conns(ns, 1, 1)
}

// An endpoint that gains or loses an address is the same endpoint, and keeps
// its connection while that is to an address it still has.
func TestAddressAddedAndDropped(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	a, b := ns[0], ns[1]
	c := l.dialWith(leastconntest.ChannelConfig{
		Endpoints:   []resolver.Endpoint{under(a, "v4"), under(b, "v4")},
		DialOptions: []grpc.DialOption{aliases()},
	})
	l.wait("both are ready", func() bool { return c.readyAt(under(a, "v4")) && c.readyAt(under(b, "v4")) })
	streams, _ := c.hold(8)
	for _, step := range []struct {
		addrs []string
		conns int
	}{
		{[]string{"v4", "v6"}, 1},
		{[]string{"v6", "v4"}, 1},
		{[]string{"v4"}, 1},
		{[]string{"v6", "v4"}, 1},
		{[]string{"v6"}, 2},
		{[]string{"v4", "v6"}, 2},
	} {
		require.NoError(t, c.Update(under(a, step.addrs...), under(b, "v4")))
		l.wait("a is ready", func() bool { return c.readyAt(under(a, step.addrs...)) && a.Conns() == step.conns })
		require.Equal(t, 4, c.inFlightAt(under(a, step.addrs...)))
		require.Equal(t, 4, c.inFlightAt(under(b, "v4")))
		require.Len(t, c.snapshot().Endpoints, 2)
	}
	_, by := c.hold(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
	require.NoError(t, leastconntest.PingAll(streams))
	l.conns(ns, 2, 1)
	require.NoError(t, leastconntest.EndAll(streams))
	require.Equal(t, 2, c.inFlightAt(under(a, "v4", "v6")))
	l.served(ns, 2, 2)
}
