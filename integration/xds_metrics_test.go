package integration

import (
	"testing"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/stats/opentelemetry"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer/xdscluster"
)

// rendered is the policy as docs/xds.md has a control plane say it.
func rendered(t *testing.T, c leastconnbalancer.Config) *clusterpb.LoadBalancingPolicy {
	t.Helper()
	policy, err := leastConnCluster(c)
	require.NoError(t, err)
	return policy
}

// Below a control plane clusters have keys of their own, and gauges are those of their endpoints:
// by locality, by cluster, and of all, which is what the servers handle.
func TestGaugesBelowXDS(t *testing.T) {
	for name, labels := range map[string][]string{
		"off":      nil,
		"locality": {"grpc.lb.locality"},
		"cluster":  {"grpc.lb.backend_service"},
		"both":     {"grpc.lb.locality", "grpc.lb.backend_service"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newTelemetry(t, labels...)
			ns := startNodes(t, "a", "b", "c", "d")
			policy := rendered(t, leastconnbalancer.Config{ResourceKey: "{target}/{cluster}"})
			service := "gauges-" + name
			p := startControlPlane(t, service, policy)
			p.serve(
				xdsCluster{name: "blue", policy: byLocality(t, policy), regions: map[string][]*endpointpb.LbEndpoint{"east": healthy(t, ns[:2]...), "west": healthy(t, ns[2])}},
				xdsCluster{name: "green", policy: policy, regions: map[string][]*endpointpb.LbEndpoint{"east": healthy(t, ns[3])}},
			)
			e := p.dial(all(ns...), opentelemetry.DialOption(opentelemetry.Options{MetricsOptions: m.options}))
			target := e.conn.CanonicalTarget()
			for range 40 {
				_, err := grpc_testing.NewTestServiceClient(e.conn).FullDuplexCall(e.ctx, grpc.WaitForReady(true))
				require.NoError(t, err)
			}
			live := func(nodes ...*leastconntest.Node) (n float64) {
				for _, node := range nodes {
					n += float64(node.Live())
				}
				return n
			}
			wait(t, "the servers have all streams", func() bool { return live(ns...) == 40 })
			keys := map[string]float64{}
			for _, s := range leastconnbalancer.Snapshots() {
				if s.InFlight > 0 {
					keys[s.ResourceKey] = float64(s.InFlight)
				}
			}
			require.Equal(t, map[string]float64{target + "/blue": live(ns[:3]...), target + "/green": live(ns[3])}, keys)

			const locality, cluster = "grpc_lb_locality", "grpc_lb_backend_service"
			east, west := `{region="east", zone="", sub_zone=""}`, `{region="west", zone="", sub_zone=""}`
			switch name {
			case "off":
				require.Equal(t, map[string]float64{target: 40}, m.by("in_flight", "grpc_target"))
				require.Equal(t, 4.0, m.by("endpoints", "grpc_lb_least_conn_state")["ready"])
			case "cluster":
				require.Equal(t, map[string]float64{"blue": live(ns[:3]...), "green": live(ns[3]), "": 40}, m.by("in_flight", cluster))
			case "locality":
				require.Equal(t, map[string]float64{east: live(ns[:2]...), west: live(ns[2]), "": 40}, m.by("in_flight", locality))
			case "both":
				got := map[string]float64{}
				for _, s := range m.scrape() {
					if s.name == "in_flight" {
						got[s.labels[locality]+" "+s.labels[cluster]] = s.value
					}
				}
				require.Equal(t, map[string]float64{
					east + " blue": live(ns[:2]...), west + " blue": live(ns[2]), " green": live(ns[3]),
					" blue": live(ns[:3]...), east + " ": live(ns[:2]...), west + " ": live(ns[2]), " ": 40,
				}, got)
			}
		})
	}
}
