package leastconnbalancer_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

func grpcWeight(ep resolver.Endpoint, w uint32) resolver.Endpoint {
	return weight.Set(ep, weight.EndpointInfo{Weight: w})
}

// weighing is a way in which a resolver gives weights.
type weighing struct {
	name      string
	set       func(resolver.Endpoint, uint32) resolver.Endpoint
	addresses bool // instead of endpoints
	parent    bool // one that passes on addresses only
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

// weighted lists the nodes with their weights.
func weighted(nodes []*leastconntest.Node, weights ...uint32) resolver.State {
	return weighings[0].state(nodes, weights...)
}

// Weights come in many forms; their changes keep counts and connections, and a
// list with a wrong one is refused as a whole.
func TestWeighings(t *testing.T) {
	t.Parallel()
	for _, w := range weighings {
		t.Run(w.name, func(t *testing.T) {
			e := parallelEnv(t)
			ns := e.nodes("a", "b", "c")
			c := e.unusedRecorded(&recordingPolicy{addresses: w.parent}, leastconntest.ChannelConfig{})
			require.NoError(t, c.UpdateState(w.state(ns[:2], 1, math.MaxUint32)))
			require.ErrorContains(t, c.unavailable(), ns[1].Addr()+": weight 4294967295: want 0 to 2147483648")
			require.NoError(t, c.UpdateState(w.state(ns[:2], 2, 5)))
			c.waitReady(ns[:2]...)
			c.hold(21)
			c.counts(ns, 6, 15, 0)
			require.NoError(t, c.UpdateState(w.state(ns[:2], lcresolver.MaxWeight, lcresolver.MaxWeight)))
			for range 2 {
				err := c.UpdateState(w.state(ns, 1, lcresolver.MaxWeight+1, 1))
				require.ErrorIs(t, err, balancer.ErrBadResolverState)
				require.ErrorContains(t, err, ns[1].Addr()+": weight 2147483649: want 0 to 2147483648")
			}
			c.hold(9)
			c.counts(ns, 15, 15, 0)
			require.Zero(t, ns[2].Conns(), "connections to c")
			require.NoError(t, c.UpdateState(w.state(ns, 1, 1, 3)))
			c.waitReady(ns...)
			_, by := c.hold(45)
			require.Equal(t, map[string]int{"c": 45}, by)
			e.conns(ns, 1, 1, 1)
		})
	}
}

// What a resolver does not say, or says where nobody reads it, is 1.
func TestWhichWeightHolds(t *testing.T) {
	t.Parallel()
	attrs := func(w uint32) *attributes.Attributes { return lcresolver.SetWeight(resolver.Endpoint{}, w).Attributes }
	endpoint := func(set func(resolver.Endpoint) resolver.Endpoint) func(string) resolver.State {
		return func(addr string) resolver.State {
			return resolver.State{Endpoints: []resolver.Endpoint{set(resolver.Endpoint{Addresses: []resolver.Address{{Addr: addr}}})}}
		}
	}
	address := func(a resolver.Address) func(string) resolver.State {
		return func(addr string) resolver.State {
			a.Addr = addr
			return resolver.State{Addresses: []resolver.Address{a}}
		}
	}
	for name, tt := range map[string]struct {
		state func(addr string) resolver.State
		want  uint32
	}{
		"none":        {endpoint(func(ep resolver.Endpoint) resolver.Endpoint { return ep }), 1},
		"0 from grpc": {endpoint(func(ep resolver.Endpoint) resolver.Endpoint { return grpcWeight(ep, 0) }), 1},
		"ours wins":   {endpoint(func(ep resolver.Endpoint) resolver.Endpoint { return lcresolver.SetWeight(grpcWeight(ep, 9), 2) }), 2},
		"an endpoint's address": {endpoint(func(ep resolver.Endpoint) resolver.Endpoint {
			ep.Addresses[0].Attributes = attrs(3)
			//lint:ignore SA1019 inside an endpoint it must not be read
			ep.Addresses[0].BalancerAttributes = attrs(3)
			return ep
		}), 1},
		"an address's Attributes": {address(resolver.Address{Attributes: attrs(3)}), 1},
		//lint:ignore SA1019 without endpoints it is the only place
		"an address's BalancerAttributes": {address(resolver.Address{BalancerAttributes: attrs(3)}), 3},
	} {
		t.Run(name, func(t *testing.T) {
			e := parallelEnv(t)
			n := e.nodes("a")[0]
			c := e.unused(leastconntest.ChannelConfig{})
			require.NoError(t, c.UpdateState(tt.state(n.Addr())))
			c.Connect()
			c.waitReady(n)
			require.Equal(t, tt.want, c.member(n).Weight)
		})
	}
}

// A cap that is out of bounds refuses the list, too.
func TestWrongCapRefusesTheList(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	list := func(limit uint32) []resolver.Endpoint {
		eps := leastconntest.Endpoints(ns...)
		eps[1] = lcresolver.SetMaxInFlight(eps[1], limit)
		return eps
	}
	c := e.unused(leastconntest.ChannelConfig{Endpoints: list(lcresolver.MaxMaxInFlight + 1)})
	require.ErrorContains(t, c.unavailable(), "least_conn: endpoint "+ns[1].Addr()+": maxInFlight 2147483648: want 0 to 2147483647")
	c.update(ns[0])
	require.ErrorIs(t, c.Update(list(1<<32-1)...), balancer.ErrBadResolverState)
	require.Zero(t, ns[1].Conns())
	require.Equal(t, "a", c.unary())
	require.NoError(t, c.Update(list(lcresolver.MaxMaxInFlight)...))
	c.waitReady(ns...)
	require.EqualValues(t, lcresolver.MaxMaxInFlight, c.member(ns[1]).MaxInFlight)
}
