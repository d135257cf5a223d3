package leastconnbalancer_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// timeoutConfig differs from another one of its kind in a method's timeout.
func timeoutConfig(seconds int) string {
	return fmt.Sprintf(`{"loadBalancingConfig":[{"least_conn":{}}],"methodConfig":[{"name":[{"service":"some.Other"}],"timeout":"%ds"}]}`, seconds)
}

// What says the same of the endpoints in another way changes neither load nor
// connections.
func TestD03SameEndpointsInOtherForm(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dial(ns[:2]...)
	_, by := c.hold(8)
	require.Equal(t, map[string]int{"a": 4, "b": 4}, by)
	plain := func() []resolver.Endpoint { return leastconntest.Endpoints(ns[:2]...) }
	type fact struct{}
	for _, push := range []func() error{
		func() error { return c.UpdateNodes(ns[1], ns[0]) },
		func() error {
			eps := plain()
			eps[0].Attributes = eps[0].Attributes.WithValue(fact{}, "new")
			return c.Update(eps...)
		},
		func() error {
			eps := plain()
			//lint:ignore SA1019 it is deprecated and must still not reconnect
			eps[1].Addresses[0].BalancerAttributes = eps[1].Addresses[0].BalancerAttributes.WithValue(fact{}, "new")
			return c.Update(eps...)
		},
		func() error { return c.UpdateConfig(timeoutConfig(1), plain()...) },
		func() error { return c.UpdateConfig(timeoutConfig(2), plain()...) },
	} {
		require.NoError(t, push())
		c.counts(ns, 4, 4, 0)
		l.conns(ns, 1, 1, 0)
	}
	c.update(ns...)
	_, by = c.hold(4)
	require.Equal(t, map[string]int{"c": 4}, by)
	l.conns(ns, 1, 1, 1)
	l.served(ns, 4, 4, 4)
}

// A setting that has nothing to do with balancing leaves the load alone.
func TestD07UnrelatedSettingChanges(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns[0])
	c.hold(6)
	c.update(ns...)
	require.NoError(t, c.UpdateConfig(timeoutConfig(1), leastconntest.Endpoints(ns...)...))
	_, by := c.hold(6)
	require.Equal(t, map[string]int{"b": 6}, by)
	c.counts(ns, 6, 6)
	l.conns(ns, 1, 1)
}

// A resolver that repeats itself under live streams changes nothing.
func TestSameListAgainAndAgain(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dial(ns...)
	held, _ := c.hold(6)
	stop := c.steady(ns[2], 2)
	for i := range 40 {
		if i%2 == 0 {
			require.NoError(t, c.UpdateNodes(ns...))
		} else {
			require.NoError(t, c.UpdateConfig(leastconntest.DefaultServiceConfig, leastconntest.Endpoints(ns...)...))
		}
		j := slices.IndexFunc(held, func(s *leastconntest.Stream) bool { return s.Node() == ns[i%2].Name() })
		require.NoError(t, held[j].End())
		opened, by := c.hold(1)
		require.Equal(t, map[string]int{ns[i%2].Name(): 1}, by)
		held[j] = opened[0]
		c.counts(ns, 2, 2, 2)
	}
	stop()
	require.NoError(t, leastconntest.PingAll(held))
	l.conns(ns, 1, 1, 1)
}

// A channel that leaves the policy and returns to it finds its load in the
// ledger that another channel holds.
func TestPolicySwitchedAwayAndBack(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dial(ns[:2]...)
	_, target, _ := strings.Cut(c.key, ":///")
	other := l.dialWith(leastconntest.ChannelConfig{Target: target}, ns[:2]...)
	other.waitMembers(2, ns[:2]...)
	streams, _ := c.hold(4)
	more, by := other.hold(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
	stop := c.steady(ns[0], 4)
	for range 3 {
		c.switchAway(ns[:2]...)
		require.NoError(t, leastconntest.PingAll(streams))
		c.switchBack(1, ns[:2]...)
		c.counts(ns, 4, 4, 0)
	}
	stop()
	c.update(ns...)
	_, by = c.hold(4)
	require.Equal(t, map[string]int{"c": 4}, by)
	require.NoError(t, leastconntest.EndAll(streams))
	c.counts(ns, 2, 2, 4)
	_, by = other.hold(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
	require.NoError(t, leastconntest.PingAll(more))
	c.counts(ns, 4, 4, 4)
}

// churn gives the channel updates of ten endpoints each that were never seen
// before, all of them on the node, and returns the last ones, ready.
func (c *channel) churn(n *leastconntest.Node, updates int) []resolver.Endpoint {
	c.lab.Helper()
	var last []resolver.Endpoint
	for range updates {
		last = nil
		for range 10 {
			fresh++
			last = append(last, under(n, fmt.Sprint(fresh)))
		}
		require.NoError(c.lab, c.Update(last...))
	}
	for _, ep := range last {
		c.lab.wait("the last list is ready", func() bool { return c.readyAt(ep) })
	}
	return last
}

// fresh numbers the endpoints of churn.
var fresh int

// Endpoints that come and go leave nothing.
func TestD10ChurnLeavesNothing(t *testing.T) {
	l := newLab(t)
	n := l.node(leastconntest.Options{Name: "a"})
	c := l.dialWith(leastconntest.ChannelConfig{Endpoints: []resolver.Endpoint{}, DialOptions: []grpc.DialOption{aliases()}})
	c.churn(n, 20)
	l.wait("the node has ten connections", func() bool { return n.OpenConns() == 10 })
	heap, goroutines := heapInUse(), runtime.NumGoroutine()
	c.churn(n, 1000)
	require.Len(t, c.snapshot().Endpoints, 10)
	l.wait("the node has ten connections", func() bool { return n.OpenConns() == 10 })
	l.atMostGoroutines(goroutines)
	l.wait("the heap has grown by less than 5 MB", func() bool { return heapInUse() < heap+5<<20 })
}

// Endpoints that leave with a stream are known until it ends.
func TestD10ChurnWithHeldStreams(t *testing.T) {
	l := newLab(t)
	n := l.node(leastconntest.Options{Name: "a"})
	c := l.dialWith(leastconntest.ChannelConfig{Endpoints: []resolver.Endpoint{}, DialOptions: []grpc.DialOption{aliases()}})
	old := c.churn(n, 1)
	streams, _ := c.hold(10)
	c.churn(n, 100)
	require.Len(t, c.snapshot().Endpoints, 20)
	for _, ep := range old {
		require.Equal(t, 1, c.inFlightAt(ep))
	}
	require.NoError(t, leastconntest.PingAll(streams))
	for i, s := range streams {
		require.NoError(t, s.End())
		require.Len(t, c.snapshot().Endpoints, 19-i)
	}
}

// heapInUse is what is reachable now.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
