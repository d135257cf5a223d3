package leastconnbalancer_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// BenchmarkStreamLimit compares unary calls over TCP to a server whose limit of streams the policy keeps with those to one
// whose limit it ignores. What waits for the limit waits in order of arrival in the one case, and in the connection in the
// other. Each op is a round of calls with the limit kept; in between there is one with it ignored, so that whatever else
// the machine does meets both. "of-ignored" is the median of what the first reached of the second's throughput.
func BenchmarkStreamLimit(b *testing.B) {
	for _, load := range []struct {
		name    string
		callers int
		calls   int // of a round
		limit   uint32
		takes   time.Duration
		size    int32 // of an answer
	}{
		{"callers=1000/limit=100/takes=5ms", 1000, 20000, 100, 5 * time.Millisecond, 0},
		{"callers=1000/limit=100/takes=0", 1000, 20000, 100, 0, 0},
		{"callers=16/limit=100/small", 16, 1000, 100, 0, 0},
		{"callers=4/limit=100/1MB", 4, 40, 100, 0, 1 << 20},
	} {
		b.Run(load.name, func(b *testing.B) {
			kept := limitedChannel(b, leastconnbalancer.StreamLimitServer, load.limit, load.takes)
			ignored := limitedChannel(b, leastconnbalancer.StreamLimitIgnore, load.limit, load.takes)
			round := func(c *leastconntest.Channel) time.Duration {
				begun := time.Now()
				makeCalls(b, c, load.callers, load.calls, load.size)
				return time.Since(begun)
			}
			ratios := make([]float64, b.N)
			var sum time.Duration
			b.ResetTimer()
			for i := range ratios {
				first, second := ignored, kept
				if i%2 == 0 {
					first, second = kept, ignored
				}
				took, other := round(first), round(second)
				if i%2 == 1 {
					took, other = other, took
				}
				sum += took
				ratios[i] = float64(other) / float64(took)
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "of-ignored")
			b.ReportMetric(float64(sum)/float64(b.N*load.calls), "ns/call")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// limitedChannel is a channel to a node of its own.
func limitedChannel(b *testing.B, streamLimit leastconnbalancer.StreamLimit, limit uint32, takes time.Duration) *leastconntest.Channel {
	n, err := leastconntest.StartNode(leastconntest.Options{Name: "a", Delay: takes})
	require.NoError(b, err)
	b.Cleanup(n.Close)
	n.SetStreamLimit(limit)
	cfg := guarded(leastconnbalancer.Config{StreamLimit: streamLimit})
	cfg.Endpoints = leastconntest.Endpoints(n)
	c, err := leastconntest.Dial(cfg)
	require.NoError(b, err)
	b.Cleanup(func() { c.Close() })
	require.NoError(b, c.WaitServed(b.Context(), n))
	return c
}

// makeCalls lets callers make so many calls together.
func makeCalls(b *testing.B, c *leastconntest.Channel, callers, calls int, size int32) {
	left := make(chan struct{}, calls)
	for range calls {
		left <- struct{}{}
	}
	close(left)
	var at sync.WaitGroup
	for range callers {
		at.Go(func() {
			for range left {
				if _, err := c.Client().UnaryCall(b.Context(), &grpc_testing.SimpleRequest{ResponseSize: size}); err != nil {
					b.Errorf("UnaryCall: %v", err)
				}
			}
		})
	}
	at.Wait()
}
