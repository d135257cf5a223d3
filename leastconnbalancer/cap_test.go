package leastconnbalancer_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
	"github.com/leastconn/grpc-leastconn/state"
)

// restless changes lists and connections until it is stopped.
func (c *channel) restless(nodes ...*leastconntest.Node) (stop func()) {
	ctx, cancel := context.WithCancel(c.lab.ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			n := nodes[rand.IntN(len(nodes))]
			conns := n.Conns()
			n.GoAway()
			assert.NoError(c.lab, c.UpdateNodes(nodes[1:]...))
			assert.NoError(c.lab, c.UpdateNodes(nodes...))
			_ = leastconntest.WaitFor(ctx, "another connection to "+n.Name(), func() bool { return n.Conns() > conns })
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// However many RPCs come at once, and whatever becomes of lists and
// connections, no node has more than its cap, in leases and at the server.
func TestCapIsNeverExceeded(t *testing.T) {
	l := newLab(t)
	ns, peaks := l.peaked("a", "b", "c")
	c := l.dialWith(guarded(capped(40)), ns...)
	stop := c.watch(atMost(40))
	calm := c.restless(ns...)
	var callers sync.WaitGroup
	for range 1000 {
		callers.Go(func() {
			s, err := c.Open(l.ctx)
			if assert.NoError(t, err) {
				assert.NoError(t, s.Ping())
				assert.NoError(t, s.End())
			}
		})
	}
	callers.Wait()
	calm()
	stop()
	for _, p := range peaks {
		require.LessOrEqual(t, p.most.Load(), int64(40), "handlers at one time")
	}
	require.GreaterOrEqual(t, ns[0].Started()+ns[1].Started()+ns[2].Started(), 1000)
	require.Zero(t, c.snapshot().Waiting)
	c.counts(ns, 0, 0, 0)
}

// All channels of the process share a cap, whatever address of a node each of
// them lists.
func TestD64ChannelsShareTheCap(t *testing.T) {
	l := newLab(t)
	n := l.node(leastconntest.Options{Name: "a"})
	dial := func(ep resolver.Endpoint) *channel {
		cfg := guarded(leastconnbalancer.Config{ResourceKey: l.Name(), MaxInFlight: 3})
		cfg.Endpoints, cfg.DialOptions = []resolver.Endpoint{ep}, append(cfg.DialOptions, aliases())
		c := l.unused(cfg)
		c.key = l.Name()
		c.Connect()
		l.wait("the node is ready", func() bool { return c.readyAt(under(n, "v4", "v6")) })
		return c
	}
	one := dial(under(n, "v4", "v6"))
	two := dial(under(n, "v6"))
	l.wait("both use it", func() bool {
		nodes := two.snapshot().Endpoints
		return len(nodes) == 1 && len(nodes[0].Members) == 2 && nodes[0].Members[0].Ready && nodes[0].Members[1].Ready
	})
	held, _ := one.hold(2)
	two.hold(1)
	require.Equal(t, 3, two.inFlightAt(under(n, "v4", "v6")))
	first, second := one.line(1), two.line(1)
	require.Equal(t, 3, n.Live())
	require.NoError(t, held[0].End())
	require.Equal(t, result{node: "a"}, <-first[0])
	require.Equal(t, result{node: "a"}, <-second[0])
	require.Equal(t, 2, n.Live())
}

// Channels may have different caps: each checks its own against the count that
// they share.
func TestChannelsWithDifferentCaps(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a")
	dial := func(limit uint32) *channel {
		cfg := leastconnbalancer.Config{ResourceKey: l.Name(), MaxInFlight: limit}
		return l.dialAs(l.Name(), guarded(cfg), ns...)
	}
	narrow, wide := dial(2), dial(4)
	wide.waitMembers(2, ns...)
	held, _ := narrow.hold(2)
	waiting := narrow.line(1)
	more, _ := wide.hold(2)
	late := wide.line(1)
	require.NoError(t, more[0].End())
	require.Equal(t, result{node: "a"}, <-late[0], "the wide one has room at 3, the narrow one has not")
	require.NoError(t, more[1].End())
	narrow.waits(1)
	require.NoError(t, held[0].End())
	require.Equal(t, result{node: "a"}, <-waiting[0])
	limits := map[int64]bool{}
	for _, m := range wide.of(ns[0]).Members {
		limits[m.MaxInFlight] = true
	}
	require.Equal(t, map[int64]bool{2: true, 4: true}, limits)
}

// The cap that a resolver gives an endpoint wins over the configuration's, 0
// lifts it.
func TestEndpointsOwnCapWins(t *testing.T) {
	for name, limits := range map[string][]int{"of the first list": {1, 0, 5, -1}, "of a later one": {-1, -1, -1, -1}} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b", "c", "d")
			cfg := guarded(capped(3))
			cfg.Endpoints = limited(ns, limits...)
			c := l.dialWith(cfg, ns...)
			require.NoError(t, c.Update(limited(ns, 1, 0, 5, -1)...))
			var got []int64
			for _, n := range ns {
				got = append(got, c.member(n).MaxInFlight)
			}
			require.Equal(t, []int64{1, 0, 5, 3}, got)
			c.hold(20)
			c.counts(ns, 1, 11, 5, 3)
			c.hold(20)
			c.counts(ns, 1, 31, 5, 3)
			require.NoError(t, c.Update(limited(ns, 0, 1, -1, 5)...))
			c.hold(5)
			c.counts(ns, 4, 31, 5, 5)
			l.conns(ns, 1, 1, 1, 1)
		})
	}
}

// A cap that is out of bounds refuses the list, and the old one stays in use.
func TestWrongCapRefusesTheList(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	list := func(limit uint32) []resolver.Endpoint {
		eps := leastconntest.Endpoints(ns...)
		eps[1] = lcresolver.SetMaxInFlight(eps[1], limit)
		return eps
	}
	c := l.unused(leastconntest.ChannelConfig{Endpoints: list(lcresolver.MaxMaxInFlight + 1)})
	require.ErrorContains(t, c.unavailable(), "least_conn: endpoint "+ns[1].Addr()+": maxInFlight 2147483648: want 0 to 2147483647")

	require.NoError(t, c.Update(limited(ns[:2], 2, 2)...))
	c.waitReady(ns[:2]...)
	c.hold(3)
	for range 2 {
		err := c.Update(list(1<<32 - 1)...)
		require.ErrorIs(t, err, balancer.ErrBadResolverState)
		require.ErrorContains(t, err, ns[1].Addr()+": maxInFlight 4294967295: want 0 to 2147483647")
	}
	c.hold(1)
	c.counts(ns, 2, 2, 0)
	require.Equal(t, state.EndpointSnapshot{}, c.of(ns[2]))
	require.Zero(t, ns[2].Conns(), "connections to c")
	require.NoError(t, c.Update(list(lcresolver.MaxMaxInFlight)...))
	c.waitReady(ns...)
	c.hold(2)
	c.counts(ns, 2, 2, 2)
}
