package integration

import (
	"testing"

	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// inRegions serves the cluster with nodes by region, below wrr_locality.
func (p *controlPlane) inRegions(regions map[string][]*leastconntest.Node) {
	p.Helper()
	c := xdsCluster{name: p.service, policy: byLocality(p.T, p.policy), regions: map[string][]*endpointpb.LbEndpoint{}}
	for region, nodes := range regions {
		c.regions[region] = healthy(p.T, nodes...)
	}
	p.serve(c)
}

// openAnywhere opens n streams wherever they go.
func (e *env) openAnywhere(n int) []*leastconntest.Stream {
	e.Helper()
	var streams []*leastconntest.Stream
	for range n {
		s, err := leastconntest.Open(e.ctx, e.conn)
		require.NoError(e, err)
		streams = append(streams, s)
	}
	return streams
}

// Below wrr_locality each locality has a balancer of its own, which comes and goes with it. Streams
// live on and count all the time; within a locality the choice is exact.
func TestLocalitiesJoinAndLeave(t *testing.T) {
	ns := startNodes(t, "a", "b", "c", "d")
	a, b, z, d := ns[0], ns[1], ns[2], ns[3]
	p := startControlPlane(t, "localities", leastConnPolicy(t, map[string]any{"failurePenalty": "0s"}))
	east := []*leastconntest.Node{a, b}
	p.inRegions(map[string][]*leastconntest.Node{"east": east, "west": {z}})
	e := p.dial(all(ns...))
	e.waitReady(a, b, z)
	streams := e.openAnywhere(40)
	held := leastconntest.Counts(streams)
	require.Positive(t, held["c"], "streams in a locality that has half of the weight")
	require.InDelta(t, held["a"], held["b"], 1)
	e.counts(held["a"], held["b"], held["c"], 0)

	p.inRegions(map[string][]*leastconntest.Node{"east": east})
	wait(t, "west is gone", func() bool { return len(e.endpoint(z).Members) == 0 })
	streams = append(streams, e.openAnywhere(3)...)
	held = leastconntest.Counts(streams)
	require.InDelta(t, held["a"], held["b"], 1)
	e.alive(streams)
	e.counts(held["a"], held["b"], held["c"], 0)

	p.inRegions(map[string][]*leastconntest.Node{"east": east, "west": {z, d}})
	e.waitReady(a, b, z, d)
	for onC := held["c"]; held["d"] < onC; held = leastconntest.Counts(streams) {
		streams = append(streams, e.openAnywhere(1)...)
		require.Equal(t, onC, leastconntest.Counts(streams)["c"], "c has streams from before, d is empty")
	}

	p.inRegions(map[string][]*leastconntest.Node{"west": {z, d}})
	wait(t, "east is gone", func() bool { return len(e.endpoint(a).Members)+len(e.endpoint(b).Members) == 0 })
	streams = append(streams, e.hold(2, map[string]int{"c": 1, "d": 1})...)
	e.counts(held["a"], held["b"], held["c"]+1, held["d"]+1)
	e.endAll(streams)
}

// A locality that is all new has its part by wrr_locality at once, also with a slow start.
func TestNewLocalityHasItsShareAtOnce(t *testing.T) {
	ns := startNodes(t, "a", "b", "c")
	p := startControlPlane(t, "new-locality", leastConnPolicy(t, map[string]any{"slowStart": map[string]any{"window": "600s", "minWeightPercent": 10}}))
	p.inRegions(map[string][]*leastconntest.Node{"east": ns[:2]})
	e := p.dial(all(ns...))
	e.waitReady(all(ns[:2]...)...)
	e.openAnywhere(20)
	p.inRegions(map[string][]*leastconntest.Node{"east": ns[:2], "west": ns[2:]})
	e.waitReady(ns[2])
	e.served("c")
	const more = 200
	onC := leastconntest.Counts(e.openAnywhere(more))["c"]
	require.InDelta(t, more/2, onC, 50, "a share that is drawn; 7 standard deviations")
}

// An endpoint that is DRAINING gets nothing new. Its streams live on and count, so it is level once it
// is back.
func TestDrainingEndpointReturns(t *testing.T) {
	ns := startNodes(t, "a", "b", "c")
	p := startControlPlane(t, "draining", leastConnPolicy(t, map[string]any{"failurePenalty": "0s"}))
	p.list(all(ns...))
	e := p.dial(all(ns...))
	e.waitReady(all(ns...)...)
	streams := e.hold(6, map[string]int{"a": 2, "b": 2, "c": 2})
	p.list(all(ns[1:]...), ns[0])
	wait(t, "a is not listed", func() bool { return len(e.endpoint(ns[0]).Members) == 0 })
	streams = append(streams, e.hold(4, map[string]int{"b": 2, "c": 2})...)
	e.counts(2, 4, 4)
	p.list(all(ns...))
	e.waitReady(all(ns...)...)
	streams = append(streams, e.hold(2, map[string]int{"a": 2})...)
	e.counts(4, 4, 4)
	e.endAll(streams)
}
