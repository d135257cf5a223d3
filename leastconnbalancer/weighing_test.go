package leastconnbalancer_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// However often weights change, under load, nothing reconnects and no count is
// lost; no RPC goes to a node while it drains.
func TestWeightsChangeUnderLoad(t *testing.T) {
	eachWeighing(t, func(t *testing.T, w weighing) {
		l := newLab(t)
		ns := l.nodes("a", "b", "c")
		c := l.dialWeighted(w, ns, 1, 1, 1)
		held := c.load(ns, 3, 2, 1)
		bg := c.background(2*time.Millisecond, 10*time.Second)
		stop := c.watch(valid)
		for range 50 {
			require.NoError(t, c.UpdateState(w.state(ns, rand.Uint32N(3), rand.Uint32N(1<<31), 1)))
			seen := bg.done.Load()
			l.wait("RPCs run", func() bool { return bg.done.Load() > seen })
		}
		stop()
		bg.stop(l)
		require.NoError(t, leastconntest.PingAll(held))
		c.counts(ns, 3, 2, 1)
		l.conns(ns, 1, 1, 1)
	})
}

// Two channels on one key may give a node different weights: each goes by its
// own, and both by one count.
func TestTwoChannelsDisagreeOnWeights(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	dial := func(a, b uint32) *channel {
		cfg := keyed(l.Name())
		cfg.Endpoints = weighings[0].state(ns, a, b).Endpoints
		return l.dialAs(l.Name(), cfg, ns...)
	}
	even, uneven, drained := dial(1, 1), dial(3, 1), dial(0, 1)
	drained.waitMembers(3, ns...)
	_, by := uneven.hold(8)
	require.Equal(t, map[string]int{"a": 6, "b": 2}, by)
	_, by = even.hold(4)
	require.Equal(t, map[string]int{"b": 4}, by)
	_, by = drained.hold(2)
	require.Equal(t, map[string]int{"b": 2}, by)
	even.counts(ns, 6, 8)
	_, by = even.hold(2)
	require.Equal(t, map[string]int{"a": 2}, by)
	_, by = uneven.hold(16)
	require.Equal(t, map[string]int{"a": 16}, by)

	require.NoError(t, drained.UpdateState(weighings[0].state(ns, 1, 0)))
	require.Equal(t, "a", drained.unary())
	_, by = even.hold(10)
	require.Equal(t, map[string]int{"b": 10}, by, "nobody else's weights have changed")
	l.conns(ns, 3, 3)
}

// xDS gives each endpoint its share of 2³¹, which changes when others come and
// go and may differ by one among equals.
func TestFixedPointWeights(t *testing.T) {
	const unit = 1 << 31
	w := weighings[1]
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dialWeighted(w, ns[:2], unit/3, unit/3*2)
	c.hold(6)
	c.counts(ns, 2, 4, 0)
	require.NoError(t, c.UpdateState(w.state(ns, unit/6, unit/3, unit/2)))
	c.waitReady(ns...)
	_, by := c.hold(6)
	require.Equal(t, map[string]int{"c": 6}, by, "the shares of a and b are the same to each other")
	c.hold(6)
	c.counts(ns, 3, 6, 9)

	require.NoError(t, c.UpdateState(w.state(ns, unit/3, unit/3, unit/3+1)))
	_, by = c.hold(9)
	require.Equal(t, map[string]int{"a": 6, "b": 3}, by)
	order := c.calls(9)
	require.Len(t, tally(order[:3]), 3, "equals take turns: %v", order)
	require.Equal(t, order[:3], order[3:6])
	l.conns(ns, 1, 1, 1)
}

// Only an endpoint's own weight is read, never one of its address, unless the
// list is of addresses: then their BalancerAttributes are the endpoints'.
func TestAddressWeights(t *testing.T) {
	attrs := func(w uint32) *attributes.Attributes { return lcresolver.SetWeight(resolver.Endpoint{}, w).Attributes }
	for name, tc := range map[string]struct {
		address   func(*resolver.Address)
		addresses bool
		want      []int
	}{
		"endpoint, Attributes": {func(a *resolver.Address) { a.Attributes = attrs(3) }, false, []int{4, 4}},
		//lint:ignore SA1019 inside an endpoint it must not be read
		"endpoint, BalancerAttributes": {func(a *resolver.Address) { a.BalancerAttributes = attrs(3) }, false, []int{4, 4}},
		"addresses, Attributes":        {func(a *resolver.Address) { a.Attributes = attrs(3) }, true, []int{4, 4}},
		//lint:ignore SA1019 without endpoints it is the only place
		"addresses, BalancerAttributes": {func(a *resolver.Address) { a.BalancerAttributes = attrs(3) }, true, []int{2, 6}},
	} {
		for below, config := range map[string]leastconntest.ChannelConfig{"": weighings[0].config(), ", parent": weighings[4].config()} {
			t.Run(name+below, func(t *testing.T) {
				l := newLab(t)
				ns := l.nodes("a", "b")
				var s resolver.State
				for i, n := range ns {
					addr := resolver.Address{Addr: n.Addr()}
					if i == 1 {
						tc.address(&addr)
					}
					if tc.addresses {
						s.Addresses = append(s.Addresses, addr)
					} else {
						s.Endpoints = append(s.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{addr}})
					}
				}
				c := l.unused(config)
				require.NoError(t, c.UpdateState(s))
				c.Connect()
				c.waitReady(ns...)
				c.hold(8)
				c.counts(ns, tc.want...)
			})
		}
	}
}

// Serial RPCs are spread by weight, though nothing is in flight when one begins.
func TestD38SerialCallsGoByWeight(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dialWeighted(weighings[0], ns, 3, 1)
	require.Equal(t, map[string]int{"a": 30, "b": 10}, tally(c.calls(40)))
}
