package leastconnbalancer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// lose checks that the streams at the node break and the others do not, and ends
// those.
func (l *lab) lose(streams []*leastconntest.Stream, node string) {
	l.Helper()
	for _, s := range streams {
		if s.Node() == node {
			require.Equal(l, codes.Unavailable, codeOf(s.Wait()))
		} else {
			require.NoError(l, s.End())
		}
	}
}

// An endpoint with two addresses is one endpoint, whichever of them gets through.
func TestOneOfTwoAddressesGetsThrough(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	one, two := l.proxied(ns[0]), l.proxied(ns[0])
	a := resolver.Endpoint{Addresses: append(one.Endpoint().Addresses, two.Endpoint().Addresses...)}
	one.Blackhole(true)
	cfg := quickly()
	cfg.Endpoints = []resolver.Endpoint{a, ns[1].Endpoint()}
	c := l.dialWith(cfg, ns[1])
	ready := func() bool { return c.readyAt(a) }
	l.wait("a is ready by its second address", ready)
	held, by := c.hold(6)
	require.Equal(t, map[string]int{"a": 3, "b": 3}, by)

	one.Heal()
	two.Refuse(true)
	before := one.Accepted()
	two.Reset()
	l.lose(held, "a")
	require.Equal(t, 0, c.inFlightAt(a))
	l.wait("a is ready by its first address", func() bool { return one.Accepted() > before && ready() })
	_, by = c.hold(6)
	require.Equal(t, map[string]int{"a": 3, "b": 3}, by)

	// What hangs on an address that has left the endpoint counts on.
	one.Blackhole(true)
	two.Heal()
	a = two.Endpoint()
	require.NoError(t, c.Update(a, ns[1].Endpoint()))
	l.wait("a is ready by its second address", ready)
	require.Equal(t, 3, c.inFlightAt(a))
	_, by = c.hold(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
}

// hangingHealth lets a node answer no health check while set.
func hangingHealth(hangs *atomic.Bool) grpc.ServerOption {
	return grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if info.FullMethod == grpc_health_v1.Health_Watch_FullMethodName && hangs.Load() {
			<-s.Context().Done()
			return s.Context().Err()
		}
		return handler(srv, s)
	})
}

// A node whose health check hangs is as good as one without connection.
func TestHealthCheckHangs(t *testing.T) {
	l := newLab(t)
	var hangs atomic.Bool
	ns := []*leastconntest.Node{
		l.node(leastconntest.Options{Name: "a", ServerOptions: []grpc.ServerOption{hangingHealth(&hangs)}}),
		l.node(leastconntest.Options{Name: "b"}),
	}
	p := l.proxied(ns[0])
	cfg := quickly()
	cfg.ServiceConfig = healthChecked
	cfg.Endpoints = []resolver.Endpoint{p.Endpoint(), ns[1].Endpoint()}
	c := l.dialWith(cfg, ns[1])
	ready := func() bool { return c.readyAt(p.Endpoint()) }
	l.wait("a is ready", ready)
	for range 3 {
		held, by := c.hold(4)
		require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
		hangs.Store(true)
		before := ns[0].Conns()
		p.Reset()
		l.lose(held, "a")
		l.wait("a has a new connection", func() bool { return ns[0].Conns() > before && ns[0].OpenConns() == 1 })
		require.Equal(t, map[string]int{"b": 10}, tally(c.calls(10)))
		require.Zero(t, c.snapshot().InFlight)
		hangs.Store(false)
		p.Reset()
		l.wait("a is ready", ready)
	}
}

// A channel that has become idle while nothing gets through takes up the node
// again when it wakes.
func TestIdleInABlackhole(t *testing.T) {
	l := newLab(t)
	p := l.proxied(l.nodes("a")[0])
	cfg := quickly()
	cfg.Endpoints = []resolver.Endpoint{p.Endpoint()}
	cfg.DialOptions = append(cfg.DialOptions, grpc.WithIdleTimeout(100*time.Millisecond))
	c := l.unused(cfg)
	for range 3 {
		require.Equal(t, "a", c.unary())
		p.Blackhole(true)
		require.Equal(t, codes.DeadlineExceeded, c.brief())
		c.waitState(connectivity.Idle)
		require.Zero(t, c.snapshot().InFlight)
		waiting := l.async(func() (string, error) { return c.Unary(l.ctx) })
		c.waitState(connectivity.Connecting)
		p.Heal()
		require.Equal(t, result{node: "a"}, <-waiting)
	}
	require.NoError(t, c.Close())
	l.wait("no connection is left", func() bool { return p.Conns() == 0 })
}

// Two channels of one service lose the same node, each its own connection.
func TestTwoChannelsLoseANode(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	p := l.proxied(ns[0])
	cfg := quickly()
	cfg.Target = "two-channels-lose-a-node"
	cfg.Endpoints = []resolver.Endpoint{p.Endpoint(), ns[1].Endpoint()}
	one, two := l.dialWith(cfg), l.dialWith(cfg)
	have := func(ready int) func() bool {
		return func() bool {
			n, _ := one.nodeAt(p.Endpoint())
			got := 0
			for _, m := range n.Members {
				if m.Ready {
					got++
				}
			}
			return got == ready
		}
	}
	l.wait("both have a", have(2))
	two.waitMembers(2, ns[1])
	for range 3 {
		first, _ := one.hold(3)
		second, _ := two.hold(5)
		require.Equal(t, 4, one.inFlightAt(p.Endpoint()))
		p.Refuse(true)
		p.Reset()
		l.lose(append(first, second...), "a")
		require.Equal(t, 0, two.inFlightAt(p.Endpoint()))
		l.wait("both have lost a", have(0))
		atB, by := two.hold(1)
		require.Equal(t, map[string]int{"b": 1}, by)
		p.Heal()
		l.wait("both have a", have(2))
		atA, by := one.hold(1)
		require.Equal(t, map[string]int{"a": 1}, by)
		leastconntest.CancelAll(append(atA, atB...))
	}
}

// A channel that is closed while it connects does not wait for the network.
func TestClosedWhileConnectingHangs(t *testing.T) {
	for name, hinder := range hindrances {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			p := l.proxied(l.nodes("a")[0])
			hinder(p)
			cfg := quickly()
			cfg.Endpoints = []resolver.Endpoint{p.Endpoint()}
			c := l.unused(cfg)
			ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
			defer cancel()
			waiting := l.async(func() (string, error) { return c.Unary(ctx, grpc.WaitForReady(true)) })
			l.wait("the channel connects", func() bool { return p.Accepted() > 0 })
			require.NoError(t, c.Close())
			require.Equal(t, codes.Canceled, codeOf((<-waiting).err))
			require.Empty(t, c.snapshot().Endpoints)
			p.Heal()
			l.wait("no connection is left", func() bool { return p.Conns() == 0 })
		})
	}
}
