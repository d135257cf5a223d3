package integration

import (
	"fmt"
	"slices"
	"testing"

	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// One cluster through two targets is one load with the key {cluster}, and two by default.
func TestClusterThroughTwoTargets(t *testing.T) {
	for key, want := range map[string][]int{"{cluster}": {6, 6}, "": {3, 9}} {
		t.Run(fmt.Sprintf("key=%s", key), func(t *testing.T) {
			ns := startNodes(t, "a", "b")
			policy := rendered(t, leastconnbalancer.Config{ResourceKey: key})
			cluster := "cluster-" + t.Name()
			dial := func(service string, nodes ...*leastconntest.Node) *env {
				p := startControlPlane(t, service, policy)
				p.serve(xdsCluster{name: cluster, policy: policy, regions: map[string][]*endpointpb.LbEndpoint{"here": healthy(t, nodes...)}})
				e := p.dial(all(nodes...))
				for _, n := range nodes {
					wait(t, n.Name()+" is ready", func() bool { return readyFor(e, n) })
				}
				return e
			}
			dial("one", ns[1]).openAnywhere(6)
			dial("two", ns...).openAnywhere(6)
			require.Equal(t, want, []int{ns[0].Live(), ns[1].Live()})
		})
	}
}

// readyFor tells whether a channel can use a node, whichever ledger has its load.
func readyFor(e *env, n *leastconntest.Node) bool {
	for _, load := range leastconnbalancer.Snapshots() {
		for _, at := range load.Endpoints {
			if slices.Contains(at.Addresses, n.Addr()) && slices.ContainsFunc(at.Members, func(m leastconnbalancer.MemberSnapshot) bool {
				return m.Ready && m.EndpointSet == e.conn.CanonicalTarget()
			}) {
				return true
			}
		}
	}
	return false
}

// A cap counts the RPCs of its key: of all clusters of the target by default, of the cluster alone
// with {target}/{cluster}.
func TestCapsOfClusters(t *testing.T) {
	for service, c := range map[string]struct {
		key  string
		room int // of two clusters
	}{"caps-one": {"", 2}, "caps-two": {"{target}/{cluster}", 4}} {
		t.Run(service, func(t *testing.T) {
			a := startNodes(t, "a")[0]
			policy := rendered(t, leastconnbalancer.Config{ResourceKey: c.key, MaxInFlight: 2, OnFull: leastconnbalancer.OnFullFail})
			p := startControlPlane(t, service, policy)
			here := map[string][]*endpointpb.LbEndpoint{"here": healthy(t, a)}
			p.serve(xdsCluster{name: "canary", policy: policy, regions: here}, xdsCluster{name: "stable", policy: policy, regions: here})
			e := p.dial(all(a))
			for range 64 { // each to a cluster that is drawn
				if _, err := leastconntest.Open(e.ctx, e.conn); err != nil {
					require.ErrorContains(t, err, "endpoints are full")
				}
			}
			require.Equal(t, c.room, a.Live())
		})
	}
}
