package integration

import (
	"testing"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// limited opens a channel to nodes of a cluster of which something else is said.
func limited(t *testing.T, service string, also func(*clusterpb.Cluster, *endpointpb.ClusterLoadAssignment), ns ...*leastconntest.Node) *env {
	t.Helper()
	policy := leastConnPolicy(t, map[string]any{"failurePenalty": "0s"})
	p := startControlPlane(t, service, policy)
	p.serve(xdsCluster{name: service, policy: policy, also: also, regions: map[string][]*endpointpb.LbEndpoint{"here": healthy(t, ns...)}})
	e := p.dial(all(ns...))
	e.waitReady(all(ns...)...)
	return e
}

// picks is how often the policy has chosen.
func (e *env) picks() (n int) {
	e.Helper()
	for _, at := range e.snapshot().Endpoints {
		n += int(at.Picks)
	}
	return n
}

// The policy is asked for those RPCs alone that the cluster does not drop.
func TestDropsBelowXDS(t *testing.T) {
	const calls = 200
	ns := startNodes(t, "a", "b")
	e := limited(t, "drops", func(_ *clusterpb.Cluster, assignment *endpointpb.ClusterLoadAssignment) {
		assignment.Policy = &endpointpb.ClusterLoadAssignment_Policy{DropOverloads: []*endpointpb.ClusterLoadAssignment_Policy_DropOverload{{
			Category:       "half",
			DropPercentage: &typepb.FractionalPercent{Numerator: 50, Denominator: typepb.FractionalPercent_HUNDRED},
		}}}
	}, ns...)
	dropped := 0
	for range calls {
		if _, err := e.unary(); err != nil {
			require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
			dropped++
		}
	}
	require.Greater(t, dropped, 0)
	require.Less(t, dropped, calls)
	require.Equal(t, calls-dropped, e.picks())
	require.Equal(t, calls-dropped, ns[0].Started()+ns[1].Started())
	e.counts(0, 0)
}

// Once the cluster has as many RPCs in flight as it takes, 1,024 if it does not say, others fail
// without the policy, and the end of one makes room for one.
func TestCircuitBreakerBelowXDS(t *testing.T) {
	for service, c := range map[string]struct {
		breakers *clusterpb.CircuitBreakers
		takes    int
	}{"circuit-breaker": {maxRequests(4), 4}, "no-circuit-breaker": {nil, 1024}} {
		t.Run(service, func(t *testing.T) {
			ns := startNodes(t, "a", "b")
			e := limited(t, service, func(cluster *clusterpb.Cluster, _ *endpointpb.ClusterLoadAssignment) {
				cluster.CircuitBreakers = c.breakers
			}, ns...)
			onA, onB := on("a", e.hold(c.takes, map[string]int{"a": c.takes / 2, "b": c.takes / 2}))
			for range 10 {
				_, err := e.unary()
				require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
			}
			require.Equal(t, c.takes, e.picks())
			e.endAll(onA[:2])
			onA = append(onA[2:], e.hold(2, map[string]int{"a": 2})...)
			_, err := e.unary()
			require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
			e.counts(c.takes/2, c.takes/2)
			e.endAll(onA, onB)
		})
	}
}

// What the cluster says of outlier detection is as the policy's parent does it anywhere.
func TestOutlierDetectionBelowXDS(t *testing.T) {
	short := &durationpb.Duration{Nanos: 500e6}
	ns := startNodes(t, "a", "b", "c")
	limited(t, "outliers", func(cluster *clusterpb.Cluster, _ *endpointpb.ClusterLoadAssignment) {
		cluster.OutlierDetection = &clusterpb.OutlierDetection{
			Interval: &durationpb.Duration{Nanos: 200e6}, BaseEjectionTime: short, MaxEjectionTime: short,
			MaxEjectionPercent:             wrapperspb.UInt32(50),
			EnforcingSuccessRate:           wrapperspb.UInt32(0),
			FailurePercentageThreshold:     wrapperspb.UInt32(50),
			EnforcingFailurePercentage:     wrapperspb.UInt32(100),
			FailurePercentageMinimumHosts:  wrapperspb.UInt32(3),
			FailurePercentageRequestVolume: wrapperspb.UInt32(5),
		}
	}, ns...).ejectAndReturn(ns)
}
