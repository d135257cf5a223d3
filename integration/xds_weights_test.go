package integration

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Weights of 1,000 endpoints change, all of them at once, while RPCs are made: none fails, none is
// lost, and once it is quiet each endpoint has its share by its last weight, as the servers count.
func TestWeightsOfManyEndpointsUnderEDS(t *testing.T) {
	const endpoints, updates, callers = 1000, 5, 4
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(most int) []int {
		weights := make([]int, endpoints)
		for i := range weights {
			weights[i] = 1 + rng.IntN(most)
		}
		return weights
	}
	total := func(weights []int) (sum int) {
		for _, w := range weights {
			sum += w
		}
		return sum
	}
	f := startFarm(t, endpoints)
	policy := leastConnPolicy(t, map[string]any{"failurePenalty": "0s"})
	p := startControlPlane(t, "many-weights", policy)
	e := p.dial(nil)
	list := func(weights []int) {
		eps := make([]*endpointpb.LbEndpoint, endpoints)
		for i, w := range weights {
			eps[i] = xdsEndpoint(t, f.addrs[i], corepb.HealthStatus_HEALTHY)
			eps[i].LoadBalancingWeight = wrapperspb.UInt32(uint32(w))
		}
		p.serve(xdsCluster{name: p.service, policy: policy, regions: map[string][]*endpointpb.LbEndpoint{"here": eps}})
		wait(t, "all are ready with their weights", func() bool { return slices.Equal(weights, e.weights(f.addrs, total(weights))) })
	}
	open := func(n int) {
		for range n {
			_, err := f.open(e)
			require.NoError(t, err)
		}
	}
	first := draw(2)
	list(first)
	open(total(first))
	require.Equal(t, first, f.held(), "streams by endpoint")

	var calls, stop atomic.Int64
	var calling sync.WaitGroup
	for range callers {
		calling.Go(func() {
			for stop.Load() == 0 {
				if _, err := e.unary(); err != nil {
					t.Error(err)
					return
				}
				calls.Add(1)
			}
		})
	}
	for range updates {
		before := calls.Load()
		list(draw(100))
		wait(t, "RPCs with these weights", func() bool { return calls.Load() > before+100 || t.Failed() })
	}
	last := draw(2)
	list(last)
	stop.Store(1)
	calling.Wait()

	open(2*total(last) - total(first))
	want := make([]int, endpoints)
	for i, w := range last {
		want[i] = 2 * w
	}
	require.Equal(t, want, f.held(), "streams by endpoint")
	var inFlight, picks int
	for _, n := range e.snapshot().Endpoints {
		inFlight, picks = inFlight+int(n.InFlight), picks+int(n.Picks)
	}
	require.Equal(t, total(want), inFlight)
	require.Equal(t, total(want)+int(calls.Load()), picks)
	require.EqualValues(t, calls.Load(), f.calls.Load(), "unary RPCs at the servers")
}

// weights returns the weights of the endpoints, which have that sum; 0 for one that is not ready.
// They come as parts of 2³¹.
func (e *env) weights(addrs []string, sum int) []int {
	by := map[string]int{}
	for _, n := range e.snapshot().Endpoints {
		if len(n.Members) == 1 && n.Members[0].Ready {
			by[n.Addresses[0]] = int(math.Round(float64(n.Members[0].Weight) / (1 << 31) * float64(sum)))
		}
	}
	weights := make([]int, len(addrs))
	for i, a := range addrs {
		weights[i] = by[a]
	}
	return weights
}
