package leastconnbalancer_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/weightedroundrobin"
	"google.golang.org/grpc/resolver"

	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
	"github.com/leastconn/grpc-leastconn/state"
)

// listCluster lists endpoints that are of a cluster, "" for none.
func (c *fakeConn) listCluster(config, cluster, resolved string, addrs ...string) {
	cfg, err := parse(config)
	require.NoError(c.tb, err)
	s := resolver.State{}
	for _, a := range addrs {
		s.Endpoints = append(s.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	if cluster != "" {
		s = weightedroundrobin.SetBackendService(s, cluster)
	}
	if resolved != "" {
		s = lcresolver.SetResourceKey(s, resolved)
	}
	require.NoError(c.tb, c.balancer.UpdateClientConnState(balancer.ClientConnState{ResolverState: s, BalancerConfig: cfg}))
}

// ledgerOf returns the only ledger that an endpoint set with the fake channel's target is in.
func (c *fakeConn) ledgerOf() (found state.Snapshot) {
	n := 0
	for _, s := range state.Snapshots() {
		for _, r := range s.EndpointSets {
			if r.Name == c.target.String() {
				found = s
				n++
			}
		}
	}
	require.Equal(c.tb, 1, n)
	return found
}

// What stands for names in the key is filled in. Where a name is lacking the key is the default.
func TestNamesInTheKey(t *testing.T) {
	const target = "fake:///TestNamesInTheKey"
	lacking := func(key, name string) []string {
		return []string{`configuration: resourceKey "` + key + `" has no effect: the channel is told nothing that ` + name + ` stands for`}
	}
	for _, tc := range []struct {
		key, cluster, resolved, want string
		warnings                     []string
	}{
		{"plain", "blue", "", "plain", nil},
		{"{cluster}", "blue", "", "blue", nil},
		{"{target}", "blue", "resolved", target, nil},
		{"{target}/{cluster}/{cluster}", "blue", "", target + "/blue/blue", nil},
		{"{cluster}", "{target}", "", "{target}", nil},
		{"x{cluster}y", "", "", target, lacking("x{cluster}y", "{cluster}")},
		{"{cluster}", "", "resolved", "resolved", lacking("{cluster}", "{cluster}")},
		{"", "blue", "", target, nil},
		{"{clusters}{}", "blue", "", "{clusters}{}", []string{
			`configuration: resourceKey: "{clusters}" stands for itself; {target} and {cluster} stand for something`,
			`configuration: resourceKey: "{}" stands for itself; {target} and {cluster} stand for something`,
		}},
		{"{\\\"a\\\":1}", "blue", "", `{"a":1}`, nil},
	} {
		c := newFakeConn(t)
		c.build(balancer.Get("least_conn"))
		c.listCluster(`{"resourceKey":"`+tc.key+`"}`, tc.cluster, tc.resolved, "a")
		got := c.ledgerOf()
		require.Equal(t, tc.want, got.ResourceKey)
		require.Equal(t, tc.warnings, got.EndpointSets[0].Warnings)
		c.listCluster(`{}`, tc.cluster, "", "a")
		require.Empty(t, c.ledgerOf().EndpointSets[0].Warnings)
		c.balancer.Close()
	}
}

// Where nothing is known of the target either, {target} is not filled in: the load stays private.
func TestNoTargetInTheKey(t *testing.T) {
	c := newFakeConn(t)
	c.target = resolver.Target{}
	c.build(balancer.Get("least_conn"))
	defer c.balancer.Close()
	c.listCluster(`{"resourceKey":"{target}/{cluster}"}`, "blue", "", "only here")
	for _, s := range state.Snapshots() {
		if len(s.Endpoints) == 1 && s.Endpoints[0].Address() == "only here" {
			require.Empty(t, s.ResourceKey)
		}
	}
}

// A cluster has a cap of its own where it has a key of its own.
func TestClusterWithItsOwnCap(t *testing.T) {
	for key, want := range map[string]bool{"{target}": false, "{target}/{cluster}": true} {
		blue, green := newFakeConn(t), newFakeConn(t)
		for cluster, c := range map[string]*fakeConn{"blue": blue, "green": green} {
			c.succeeds = true
			c.build(balancer.Get("least_conn"))
			c.listCluster(`{"resourceKey":"`+key+`","maxInFlight":1,"onFull":"fail"}`, cluster, "", "a")
			c.drive()
		}
		_, end := blue.pick()
		res, err := green.picker().Pick(balancer.PickInfo{Ctx: t.Context()})
		require.Equal(t, want, err == nil, "%s: %v", key, err)
		if err == nil {
			res.Done(balancer.DoneInfo{})
		}
		end(balancer.DoneInfo{})
		blue.balancer.Close()
		green.balancer.Close()
	}
}
