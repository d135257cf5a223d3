package integration

import (
	"testing"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer/orcaload"
)

// Under a control plane, streams move to a node that joins, and off one that is DRAINING,
// exactly as many as needed: which grpc takes for one that is not listed.
func TestStreamsMoveUnderEDS(t *testing.T) {
	config := map[string]any{"rebalance": map[string]any{"perSecond": 50, "minAge": "0s", "drainWithin": "1s"}}
	for service, policy := range map[string]*clusterpb.LoadBalancingPolicy{
		"alone":       leastConnPolicy(t, config),
		"by-locality": byLocality(t, leastConnPolicy(t, config)),
	} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			ns := startNodes(t, "a", "b", "c", "d")
			p := startControlPlane(t, service, policy)
			p.list(all(ns[1:]...))
			e := p.dial(all(ns...))
			e.waitReady(all(ns[1:]...)...)
			s := e.sessions(300)
			s.live(ns, 0, 100, 100, 100)

			p.list(all(ns...))
			s.live(ns, 75, 75, 75, 75)
			require.EqualValues(t, 75, s.told.Load(), "streams that were told to move: a has joined")

			p.list(all(ns[1:]...), ns[0])
			s.live(ns, 0, 100, 100, 100)
			require.EqualValues(t, 150, s.told.Load(), "streams that were told to move: a is draining")
		})
	}
}

// Streams leave a locality that goes as a whole, a priority that drains, and a cluster that the route leaves, for
// nodes that are used.
func TestStreamsMoveBetweenPolicies(t *testing.T) {
	config := map[string]any{"rebalance": map[string]any{"perSecond": 50, "minAge": "0s", "drainWithin": "1s"}}
	for service, serve := range map[string]func(p *controlPlane, first, then []*leastconntest.Node, left bool){
		"locality-goes": func(p *controlPlane, first, then []*leastconntest.Node, left bool) {
			regions := map[string][]*leastconntest.Node{"east": first, "west": then}
			if left {
				delete(regions, "east")
			}
			p.inRegions(regions)
		},
		"priority-drains": func(p *controlPlane, first, then []*leastconntest.Node, left bool) {
			health := corepb.HealthStatus_HEALTHY
			if left {
				health = corepb.HealthStatus_DRAINING
			}
			p.serve(xdsCluster{name: p.service, policy: p.policy, priorities: []string{"home", "away"}, regions: map[string][]*endpointpb.LbEndpoint{
				"home": xdsEndpoints(p.T, health, all(first...)...), "away": healthy(p.T, then...),
			}})
		},
		"route-goes": func(p *controlPlane, first, then []*leastconntest.Node, left bool) {
			p.routed = []string{"blue", "green"}
			if left {
				p.routed = []string{"green"}
			}
			p.serve(
				xdsCluster{name: "blue", policy: p.policy, regions: map[string][]*endpointpb.LbEndpoint{"here": healthy(p.T, first...)}},
				xdsCluster{name: "green", policy: p.policy, regions: map[string][]*endpointpb.LbEndpoint{"here": healthy(p.T, then...)}},
			)
		},
	} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			ns := startNodes(t, "a", "b", "c", "d")
			p := startControlPlane(t, service, leastConnPolicy(t, config))
			serve(p, ns[:2], ns[2:], false)
			e := p.dial(all(ns...))
			e.waitReady(all(ns[:2]...)...)
			s := e.sessions(100)
			wait(t, "all streams are open", func() bool { return ns[0].Live()+ns[1].Live()+ns[2].Live()+ns[3].Live() == 100 })
			leave := ns[0].Live() + ns[1].Live()
			require.Positive(t, leave)
			serve(p, ns[:2], ns[2:], true)
			s.live(ns, 0, 0, 50, 50)
			require.EqualValues(t, leave, s.told.Load(), "streams that were told to move")
		})
	}
}

// What servers report of the load of others decides below xDS, too: two clusters that share a node
// and no ledger, as two processes do.
func TestReportsBelowXDS(t *testing.T) {
	a, b := startReportingNode(t, "a"), startReportingNode(t, "b")
	policy := leastConnPolicy(t, map[string]any{"reports": map[string]any{"interval": "0.2s"}})
	dial := func(service string, servers ...server) *env {
		p := startControlPlane(t, service, policy)
		p.list(servers)
		e := p.dial(servers)
		e.waitReady(servers...)
		return e
	}
	dial("reports-other", a).hold(20, map[string]int{"a": 20})
	e := dial("reports", a, b)
	wait(t, "a has told what others have", func() bool { return e.endpoint(a).Report().Others == 20 && e.endpoint(b).Report().Told })
	e.hold(10, map[string]int{"b": 10})
	require.EqualValues(t, 0, e.endpoint(a).InFlight)
}
