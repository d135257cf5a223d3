package leastconnbalancer_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
	"github.com/leastconn/grpc-leastconn/state"
)

// keyed selects the policy with a resource key.
func keyed(key string) leastconntest.ChannelConfig {
	return guarded(leastconnbalancer.Config{ResourceKey: key})
}

// listKeyed lists the nodes with a resource key from the resolver, "" for none.
func listKeyed(key string, nodes ...*leastconntest.Node) resolver.State {
	s := resolver.State{Endpoints: leastconntest.Endpoints(nodes...)}
	if key == "" {
		return s
	}
	return lcresolver.SetResourceKey(s, key)
}

// The key is the configuration's, else the resolver's, else the target.
func TestWhereTheKeyComesFrom(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	for _, tt := range []struct{ config, resolved, want string }{
		{"", "", ""}, {"", "/resolver", "/resolver"}, {"/config", "/resolver", "/config"}, {"/config 2", "", "/config 2"},
	} {
		key := func(k string) string {
			if k == "" {
				return ""
			}
			return e.Name() + k
		}
		c := e.unused(keyed(key(tt.config)))
		require.NoError(t, c.UpdateState(listKeyed(key(tt.resolved), ns...)))
		c.Connect()
		if tt.want != "" {
			c.key = key(tt.want)
		}
		c.waitReady(ns...)
		c.load(ns, 1, 3)
		require.NoError(t, c.Close())
	}
}

// A key that the resolver changes moves the balancer, with its connections and
// without its streams.
func TestResolverChangesTheKey(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	c := e.dial(ns...)
	c.hold(6)
	require.NoError(t, c.UpdateState(listKeyed(e.Name(), ns...)))
	c.counts(ns, 3, 3)
	c.key = e.Name()
	c.counts(ns, 0, 0)
	c.load(ns, 0, 2)
	e.conns(ns, 1, 1)
}

// A channel that moves to another key brings only what it lists now: the id of an
// endpoint that has left is not put on a node there.
func TestKeyMovesWithoutWhatHasLeft(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	other := e.dialAs(e.Name(), keyed(e.Name()), ns[0])
	other.hold(3)
	c := e.dialWith(leastconntest.ChannelConfig{Endpoints: []resolver.Endpoint{lcresolver.SetID(ns[0].Endpoint(), "old")}}, ns[0])
	require.NoError(t, c.UpdateState(lcresolver.SetResourceKey(resolver.State{Endpoints: []resolver.Endpoint{
		lcresolver.SetID(ns[0].Endpoint(), "new"), lcresolver.SetID(ns[1].Endpoint(), "nb"),
	}}, e.Name())))
	c.key = e.Name()
	c.waitMembers(2, ns[0])
	c.waitReady(ns...)
	_, by := c.hold(3)
	require.Equal(t, map[string]int{"b": 3}, by)
}

// Without a key each channel's load is its own.
func TestChannelsWithoutAKey(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	private := func(n *leastconntest.Node) []state.Snapshot {
		return slices.DeleteFunc(state.Snapshots(), func(s state.Snapshot) bool {
			return s.ResourceKey != "" || !slices.ContainsFunc(s.Endpoints, func(ep state.EndpointSnapshot) bool {
				return slices.Contains(ep.Addresses, n.Addr()) && len(ep.Members) == 1 && ep.Members[0].Ready
			})
		})
	}
	dial := func(nodes ...*leastconntest.Node) *channel {
		return e.dialRecorded(&recordingPolicy{keyless: true}, leastconntest.ChannelConfig{Endpoints: leastconntest.Endpoints(nodes...)})
	}
	one, two := dial(ns[0]), dial(ns...)
	e.wait("both ledgers", func() bool { return len(private(ns[0])) == 2 && len(private(ns[1])) == 1 })
	one.hold(6)
	_, by := two.hold(6)
	require.Equal(t, map[string]int{"a": 3, "b": 3}, by)
	for _, s := range private(ns[0]) {
		require.EqualValues(t, 6, s.InFlight)
	}
	require.NoError(t, one.UpdateNodes(ns...))
	e.wait("the first knows b", func() bool { return len(private(ns[1])) == 2 })
	_, by = one.hold(6)
	require.Equal(t, map[string]int{"b": 6}, by)
	require.NoError(t, one.Close())
	require.NoError(t, two.Close())
	e.wait("nothing is left", func() bool { return len(private(ns[0])) == 0 })
}
