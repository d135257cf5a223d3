package integration

import (
	"fmt"
	"slices"
	"testing"

	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
	for key, room := range map[string]bool{"": false, "{target}/{cluster}": true} {
		t.Run(fmt.Sprintf("key=%s", key), func(t *testing.T) {
			a := startNodes(t, "a")[0]
			policy := rendered(t, leastconnbalancer.Config{ResourceKey: key, MaxInFlight: 2, OnFull: leastconnbalancer.OnFullFail})
			p := startControlPlane(t, "caps-"+map[bool]string{false: "one", true: "two"}[room], policy)
			e := p.dial(all(a))
			route := func(to string) {
				p.routed = []string{to}
				here := map[string][]*endpointpb.LbEndpoint{"here": healthy(t, a)}
				p.serve(xdsCluster{name: "canary", policy: policy, regions: here}, xdsCluster{name: "stable", policy: policy, regions: here})
			}
			route("canary")
			wait(t, "canary answers", func() bool { _, err := e.unary(); return err == nil })
			held := e.hold(2, map[string]int{"a": 2})
			_, err := e.unary()
			require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
			route("stable")
			if room {
				wait(t, "stable has room", func() bool { _, err := e.unary(); return err == nil })
				held = append(held, e.hold(2, map[string]int{"a": 2})...)
			} else {
				wait(t, "the client is told", p.heard)
			}
			_, err = e.unary()
			require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
			e.endAll(held)
		})
	}
}
