package leastconnbalancer_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// What says the same of the endpoints in another way changes neither load nor
// connections.
func TestSameEndpointsInOtherForm(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	c := e.dial(ns...)
	c.hold(8)
	type fact struct{}
	type incomparable []int
	for name, list := range map[string]func() []resolver.Endpoint{
		"order": func() []resolver.Endpoint { return leastconntest.Endpoints(ns[1], ns[0]) },
		"attributes": func() []resolver.Endpoint {
			eps := leastconntest.Endpoints(ns...)
			eps[0].Attributes = eps[0].Attributes.WithValue(fact{}, "new")
			return eps
		},
		"attributes that Go cannot compare": func() []resolver.Endpoint {
			eps := leastconntest.Endpoints(ns...)
			eps[0].Attributes = eps[0].Attributes.WithValue(fact{}, incomparable{1})
			return eps
		},
		"attributes of an address": func() []resolver.Endpoint {
			eps := leastconntest.Endpoints(ns...)
			//lint:ignore SA1019 it is deprecated and must still not reconnect
			eps[1].Addresses[0].BalancerAttributes = eps[1].Addresses[0].BalancerAttributes.WithValue(fact{}, "new")
			return eps
		},
		"an address twice": func() []resolver.Endpoint {
			eps := leastconntest.Endpoints(ns...)
			eps[1].Addresses = append(eps[1].Addresses, eps[1].Addresses...)
			return eps
		},
		"no address": func() []resolver.Endpoint {
			return append([]resolver.Endpoint{{}}, leastconntest.Endpoints(ns...)...)
		},
	} {
		for range 2 {
			require.NoError(t, c.Update(list()...), name)
			c.counts(ns, 4, 4)
			e.conns(ns, 1, 1)
			require.Len(t, c.snapshot().Endpoints, 2, name)
		}
	}
	other := `{"loadBalancingConfig":[{"least_conn":{}}],"methodConfig":[{"name":[{"service":"some.Other"}],"timeout":"1s"}]}`
	require.NoError(t, c.UpdateConfig(other, leastconntest.Endpoints(ns...)...))
	c.counts(ns, 4, 4)
	e.conns(ns, 1, 1)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, tally(c.calls(4)))
}

// An endpoint that gains or loses an address is the same endpoint, and keeps its
// connection while that is to an address it still has.
func TestAddressAddedAndDropped(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	a, b := ns[0], ns[1]
	c := e.dialWith(leastconntest.ChannelConfig{
		Endpoints:   []resolver.Endpoint{under(a, "v4"), under(b, "v4")},
		DialOptions: []grpc.DialOption{aliases()},
	})
	e.wait("both are ready", func() bool { return c.readyAt(under(a, "v4")) && c.readyAt(under(b, "v4")) })
	streams, _ := c.hold(8)
	for _, step := range []struct {
		addrs []string
		conns int
	}{
		{[]string{"v4", "v6"}, 1}, {[]string{"v6", "v4"}, 1}, {[]string{"v4"}, 1},
		{[]string{"v6", "v4"}, 1}, {[]string{"v6"}, 2}, {[]string{"v4", "v6"}, 2},
	} {
		require.NoError(t, c.Update(under(a, step.addrs...), under(b, "v4")))
		e.wait("a is ready", func() bool { return c.readyAt(under(a, step.addrs...)) && a.Conns() == step.conns })
		require.Equal(t, 4, c.inFlightAt(under(a, step.addrs...)))
		require.Equal(t, 4, c.inFlightAt(under(b, "v4")))
		require.Len(t, c.snapshot().Endpoints, 2)
	}
	_, by := c.hold(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
	require.NoError(t, leastconntest.EndAll(streams))
	require.Equal(t, 2, c.inFlightAt(under(a, "v4", "v6")))
}

// An endpoint with two addresses is one endpoint, whichever of them gets through.
func TestOneOfTwoAddressesGetsThrough(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	one, two := e.proxied(ns[0]), e.proxied(ns[0])
	a := resolver.Endpoint{Addresses: append(one.Endpoint().Addresses, two.Endpoint().Addresses...)}
	one.Refuse(true)
	cfg := quickly()
	cfg.Endpoints = []resolver.Endpoint{a, ns[1].Endpoint()}
	c := e.dialWith(cfg, ns[1])
	e.wait("a is ready by its second address", func() bool { return c.readyAt(a) })
	held, by := c.hold(6)
	require.Equal(t, map[string]int{"a": 3, "b": 3}, by)
	one.Heal()
	two.Refuse(true)
	before := one.Accepted()
	two.Reset()
	for _, s := range held {
		if s.Node() == "a" {
			require.Equal(t, codes.Unavailable, codeOf(s.Wait()))
		}
	}
	e.wait("a is ready by its first address", func() bool { return one.Accepted() > before && c.readyAt(a) })
	require.Equal(t, 0, c.inFlightAt(a))
	_, by = c.hold(3)
	require.Equal(t, map[string]int{"a": 3}, by)
}

// Of two endpoints with one id the first holds, wherever the other one stood
// before; what is not listed gets nothing.
func TestOneIDListedTwice(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c")
	c := e.dialWith(leastconntest.ChannelConfig{
		Endpoints: []resolver.Endpoint{lcresolver.SetID(ns[0].Endpoint(), "y"), lcresolver.SetID(ns[1].Endpoint(), "x")},
	}, ns[:2]...)
	require.NoError(t, c.Update(lcresolver.SetID(ns[2].Endpoint(), "x"), lcresolver.SetID(ns[1].Endpoint(), "x")))
	c.waitReady(ns[2])
	_, by := c.hold(2)
	require.Equal(t, map[string]int{"c": 2}, by)
	e.wait("a and b have no connection", func() bool { return ns[0].OpenConns()+ns[1].OpenConns() == 0 })
	require.NoError(t, c.Update(ns[0].Endpoint()))
	c.waitReady(ns[0])
	_, by = c.hold(4)
	require.Equal(t, map[string]int{"a": 4}, by)
}

// A resolver may write into the slices that it sent before and send them again.
// gRPC's own policies hear that, and so does this one.
func TestListEditedInPlaceIsHeard(t *testing.T) {
	asRoundRobin(t, func(e *env, cfg leastconntest.ChannelConfig) {
		ns := e.nodes("a", "b", "c")
		list := leastconntest.Endpoints(ns[:2]...)
		cfg.Endpoints = list
		c := e.unused(cfg)
		answer := func(want ...string) {
			e.wait("answers from these alone", func() bool {
				by := tally(c.calls(6))
				for _, name := range want {
					if by[name] == 0 {
						return false
					}
				}
				return len(by) == len(want)
			})
		}
		answer("a", "b")
		list[0].Addresses[0].Addr = ns[2].Addr()
		require.NoError(e, c.Update(list...))
		answer("b", "c")
		if !strings.Contains(cfg.ServiceConfig, roundrobin.Name) { // which has no weights
			list[1] = lcresolver.SetWeight(list[1], 0)
			require.NoError(e, c.Update(list...))
			answer("c")
		}
	})
}
