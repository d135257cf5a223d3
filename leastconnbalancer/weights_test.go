package leastconnbalancer_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// weighing is a way in which a resolver gives weights.
type weighing struct {
	name      string
	set       func(resolver.Endpoint, uint32) resolver.Endpoint
	addresses bool // instead of endpoints
	parent    bool // one that passes on addresses only
}

func grpcWeight(ep resolver.Endpoint, w uint32) resolver.Endpoint {
	return weight.Set(ep, weight.EndpointInfo{Weight: w})
}

var weighings = []weighing{
	{name: "ours", set: lcresolver.SetWeight},
	{name: "grpc", set: grpcWeight},
	{name: "ours, addresses", set: lcresolver.SetWeight, addresses: true},
	{name: "grpc, addresses", set: grpcWeight, addresses: true},
	{name: "ours, parent", set: lcresolver.SetWeight, parent: true},
	{name: "grpc, parent", set: grpcWeight, parent: true},
}

// state lists the nodes with their weights.
func (w weighing) state(nodes []*leastconntest.Node, weights ...uint32) resolver.State {
	var s resolver.State
	for i, n := range nodes {
		ep := w.set(n.Endpoint(), weights[i])
		s.Endpoints = append(s.Endpoints, ep)
		//lint:ignore SA1019 a state without endpoints has no other place
		s.Addresses = append(s.Addresses, resolver.Address{Addr: n.Addr(), BalancerAttributes: ep.Attributes})
	}
	if w.addresses {
		return resolver.State{Addresses: s.Addresses}
	}
	return resolver.State{Endpoints: s.Endpoints}
}

func (w weighing) config() leastconntest.ChannelConfig {
	if w.parent {
		return leastconntest.ChannelConfig{ServiceConfig: `{"loadBalancingConfig":[{"addresses_only_parent":{}}]}`}
	}
	return leastconntest.ChannelConfig{}
}

// dialWeighted opens a channel whose first list has the weights.
func (l *lab) dialWeighted(w weighing, nodes []*leastconntest.Node, weights ...uint32) *channel {
	l.Helper()
	c := l.unused(w.config())
	require.NoError(l, c.UpdateState(w.state(nodes, weights...)))
	c.Connect()
	c.waitReady(nodes...)
	return c
}

func eachWeighing(t *testing.T, test func(*testing.T, weighing)) {
	for _, w := range weighings {
		t.Run(w.name, func(t *testing.T) { test(t, w) })
	}
}

func TestD39WeightedShares(t *testing.T) {
	eachWeighing(t, func(t *testing.T, w weighing) {
		l := newLab(t)
		ns := l.nodes("a", "b")
		c := l.dialWeighted(w, ns, 2, 5)
		held := map[string]float64{}
		for n := 1; n <= 21; n++ {
			_, by := c.hold(1)
			for node := range by {
				held[node]++
			}
			require.Less(t, held["a"], 1+2*float64(n)/7, "less than one above its share, held: %v", held)
			require.Less(t, held["b"], 1+5*float64(n)/7, "held: %v", held)
			if n%7 == 0 {
				c.counts(ns, n/7*2, n/7*5)
			}
		}
		l.served(ns, 6, 15)
	})
}

func TestD41SmallShareIsExact(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dialWeighted(weighings[0], ns, 95, 5)
	held, _ := c.hold(200)
	c.counts(ns, 190, 10)

	rand.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
	leastconntest.CancelAll(held[:100])
	by := leastconntest.Counts(held[100:])
	c.counts(ns, by["a"], by["b"])
	c.hold(100)
	a, _ := c.inFlight(ns[0])
	b, _ := c.inFlight(ns[1])
	require.InDelta(t, 190, a, 1)
	require.Equal(t, 200, a+b)
}

func TestD43WithoutWeightItIsOne(t *testing.T) {
	missing := map[string]func(resolver.Endpoint) resolver.Endpoint{
		"none":        func(ep resolver.Endpoint) resolver.Endpoint { return ep },
		"0 from grpc": func(ep resolver.Endpoint) resolver.Endpoint { return grpcWeight(ep, 0) },
		"ours wins":   func(ep resolver.Endpoint) resolver.Endpoint { return lcresolver.SetWeight(grpcWeight(ep, 9), 1) },
	}
	for name, without := range missing {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b")
			c := l.dialWith(leastconntest.ChannelConfig{Endpoints: []resolver.Endpoint{
				without(ns[0].Endpoint()), lcresolver.SetWeight(ns[1].Endpoint(), 3),
			}}, ns...)
			c.hold(8)
			c.counts(ns, 2, 6)
		})
	}
}

func TestD43WrongWeightRefusesTheList(t *testing.T) {
	eachWeighing(t, func(t *testing.T, w weighing) {
		l := newLab(t)
		ns := l.nodes("a", "b", "c")
		c := l.dialWeighted(w, ns[:2], lcresolver.MaxWeight, lcresolver.MaxWeight)
		c.hold(4)

		for range 2 {
			err := c.UpdateState(w.state(ns, 1, lcresolver.MaxWeight+1, 1))
			require.ErrorIs(t, err, balancer.ErrBadResolverState)
			require.ErrorContains(t, err, ns[1].Addr()+": weight 2147483649: want 0 to 2147483648")
		}
		c.counts(ns, 2, 2, 0)
		_, by := c.hold(2)
		require.Equal(t, map[string]int{"a": 1, "b": 1}, by)
		_, listed := c.inFlight(ns[2])
		require.False(t, listed, "c is in the ledger")
		require.Zero(t, ns[2].Conns(), "connections to c")

		require.NoError(t, c.UpdateState(w.state(ns, 1, 1, 1)))
		c.waitReady(ns...)
		_, by = c.hold(3)
		require.Equal(t, map[string]int{"c": 3}, by)
	})
}

func TestD43WrongWeightAtFirst(t *testing.T) {
	eachWeighing(t, func(t *testing.T, w weighing) {
		l := newLab(t)
		ns := l.nodes("a", "b")
		c := l.unused(w.config())
		require.NoError(t, c.UpdateState(w.state(ns, 1, math.MaxUint32)))

		require.ErrorContains(t, c.unavailable(), ns[1].Addr()+": weight 4294967295: want 0 to 2147483648")

		require.NoError(t, c.UpdateState(w.state(ns, 1, 3)))
		c.waitReady(ns...)
		c.hold(8)
		c.counts(ns, 2, 6)
	})
}

func TestWeightChangeKeepsCounts(t *testing.T) {
	eachWeighing(t, func(t *testing.T, w weighing) {
		l := newLab(t)
		ns := l.nodes("a", "b")
		c := l.dialWeighted(w, ns, 1, 1)
		c.hold(4)
		require.NoError(t, c.UpdateState(w.state(ns, 1, 3)))
		c.counts(ns, 2, 2)
		_, by := c.hold(4)
		require.Equal(t, map[string]int{"b": 4}, by)
		require.Equal(t, []int{1, 1}, []int{ns[0].Conns(), ns[1].Conns()})
	})
}

func TestWeightZeroDrains(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	w := weighings[0]
	c := l.dialWeighted(w, ns, 1, 1)
	held, _ := c.hold(6)

	require.NoError(t, c.UpdateState(w.state(ns, 0, 1)))
	require.Equal(t, map[string]int{"b": 20}, tally(c.calls(20)))
	_, by := c.hold(5)
	require.Equal(t, map[string]int{"b": 5}, by)
	require.NoError(t, leastconntest.PingAll(held))
	c.counts(ns, 3, 8)

	require.NoError(t, c.UpdateState(w.state(ns, 1, 1)))
	_, by = c.hold(5)
	require.Equal(t, map[string]int{"a": 5}, by)
	c.counts(ns, 8, 8)
	require.Equal(t, []int{1, 1}, []int{ns[0].Conns(), ns[1].Conns()})
}

func TestAllDraining(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	w := weighings[0]
	c := l.dialWeighted(w, ns, 1, 1)
	held, _ := c.hold(2)
	require.NoError(t, c.UpdateState(w.state(ns, 0, 0)))

	require.ErrorContains(t, c.unavailable(), "all 2 endpoints are draining (weight 0)")
	require.Equal(t, codes.DeadlineExceeded, c.brief(grpc.WaitForReady(true)))
	waiting := l.async(func() (string, error) { return c.Unary(l.ctx, grpc.WaitForReady(true)) })
	require.NoError(t, leastconntest.PingAll(held))
	c.counts(ns, 1, 1)

	require.NoError(t, c.UpdateState(w.state(ns, 0, 1)))
	require.Equal(t, result{node: "b"}, <-waiting)
}

func TestDrainingWhileTheNextNodeConnects(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	d := newDialer()
	c := l.dialWith(leastconntest.ChannelConfig{DialOptions: dialOptions(d)}, ns[0])
	c.hold(3)
	d.shut(ns[1])
	require.NoError(t, c.UpdateState(weighings[0].state(ns, 0, 1)))
	require.Equal(t, codes.DeadlineExceeded, c.brief(), "RPCs wait for b")

	waiting := l.async(func() (string, error) { return c.Unary(l.ctx) })
	d.open(ns[1])
	require.Equal(t, result{node: "b"}, <-waiting)
	c.counts(ns, 3, 0)
}
