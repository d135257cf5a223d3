package integration

import (
	"fmt"
	"slices"
	"testing"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// Clusters whose nodes at home are preferred to the one that is away: by priorities, or as an
// aggregate of two clusters.
var withFailover = map[string]func(c xdsCluster, home, away []*endpointpb.LbEndpoint) []xdsCluster{
	"priorities": func(c xdsCluster, home, away []*endpointpb.LbEndpoint) []xdsCluster {
		c.regions = map[string][]*endpointpb.LbEndpoint{"home": home, "away": away}
		c.priorities = []string{"home", "away"}
		return []xdsCluster{c}
	},
	"aggregate": func(c xdsCluster, home, away []*endpointpb.LbEndpoint) []xdsCluster {
		first, second := c, c
		first.name, second.name = c.name+"-home", c.name+"-away"
		first.regions = map[string][]*endpointpb.LbEndpoint{"here": home}
		second.regions = map[string][]*endpointpb.LbEndpoint{"here": away}
		c.aggregates = []string{first.name, second.name}
		return []xdsCluster{c, first, second}
	},
}

// RPCs fail over while no node at home is healthy, or none can be reached, and return. Streams live
// on where they are and count all the time, on both sides.
func TestFailoverAndReturnBelowXDS(t *testing.T) {
	for name, clusters := range withFailover {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := startNodes(t, "a", "b", "c")
			home, away := ns[:2], ns[2]
			policy := leastConnPolicy(t, map[string]any{"failurePenalty": "0s"})
			p := startControlPlane(t, "failover-"+name, policy)
			p.routed = []string{p.service}
			serve := func(atHome corepb.HealthStatus) {
				p.serve(clusters(xdsCluster{name: p.service, policy: policy}, xdsEndpoints(t, atHome, all(home...)...), healthy(t, away))...)
			}
			serve(corepb.HealthStatus_HEALTHY)
			e := p.dial(all(ns...))
			e.waitReady(all(home...)...)
			onA, onB := on("a", e.hold(4, map[string]int{"a": 2, "b": 2}))
			require.Zero(t, away.Conns(), "connections to a node that is not needed")

			serve(corepb.HealthStatus_UNHEALTHY)
			e.served("c")
			onC := e.hold(3, map[string]int{"c": 3})
			e.alive(onB)
			e.endAll(onA)

			serve(corepb.HealthStatus_HEALTHY)
			e.served("a", "b")
			e.waitReady(all(home...)...)
			onA = e.hold(2, map[string]int{"a": 2})
			e.counts(2, 2, 3)

			for _, n := range home {
				n.Stop()
			}
			e.lost(append(onA, onB...), codes.Unavailable)
			e.served("c")
			onC = append(onC, e.hold(1, map[string]int{"c": 1})...)
			for _, n := range home {
				require.NoError(t, n.Restart())
			}
			e.served("a", "b")
			e.waitReady(all(home...)...)
			back := e.hold(4, map[string]int{"a": 2, "b": 2})
			e.counts(2, 2, 4)
			e.endAll(back, onC)
		})
	}
}

// served waits until only nodes of these names answer.
func (e *env) served(by ...string) {
	e.Helper()
	wait(e.T, fmt.Sprint(by, " answer"), func() bool {
		n, err := e.unary()
		return err == nil && slices.Contains(by, n)
	})
}
