package leastconnbalancer_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// BenchmarkWaiters measures RPCs over TCP that wait for room, with so many waiting at a time: each op is one RPC served.
// gRPC wakes all that wait whenever a picker is published, so what a wake-up costs grows with their number.
func BenchmarkWaiters(b *testing.B) {
	for _, waiting := range []int{0, 10, 100, 1000, 9900} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			const room = 8 // on two nodes
			ns, err := leastconntest.StartNodes(leastconntest.Options{}, "a", "b")
			require.NoError(b, err)
			defer leastconntest.CloseNodes(ns...)
			cfg := guarded(leastconnbalancer.Config{MaxInFlight: room / 2, MaxQueued: ptr[uint32](10_000)})
			cfg.Endpoints = leastconntest.Endpoints(ns...)
			c, err := leastconntest.Dial(cfg)
			require.NoError(b, err)
			defer c.Close()
			require.NoError(b, c.WaitServed(b.Context(), ns...))

			left := make(chan struct{}, b.N)
			for range b.N {
				left <- struct{}{}
			}
			close(left)
			b.ResetTimer()
			var callers sync.WaitGroup
			for range room + waiting {
				callers.Go(func() {
					for range left {
						if _, err := c.Unary(b.Context()); err != nil {
							b.Errorf("Unary: %v", err)
						}
					}
				})
			}
			callers.Wait()
		})
	}
}

// BenchmarkMixedCosts lets 40 callers call two nodes of whose RPCs one in ten
// takes a hundred times as long as the others, and tells what the slowest hundredth
// takes, and how far apart the nodes' means in flight are.
func BenchmarkMixedCosts(b *testing.B) {
	for _, policy := range []string{"least_conn", "round_robin"} {
		b.Run("policy="+policy, func(b *testing.B) {
			var live, sums [2]atomic.Int64
			var ns []*leastconntest.Node
			for i, name := range []string{"a", "b"} {
				var rpcs atomic.Int64
				takes := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
					sums[i].Add(live[i].Add(1))
					defer live[i].Add(-1)
					time.Sleep(time.Millisecond)
					if rpcs.Add(1)%10 == 0 {
						time.Sleep(99 * time.Millisecond)
					}
					return handler(ctx, req)
				}
				n, err := leastconntest.StartNode(leastconntest.Options{Name: name, ServerOptions: []grpc.ServerOption{grpc.ChainUnaryInterceptor(takes)}})
				require.NoError(b, err)
				defer n.Close()
				ns = append(ns, n)
			}
			c, err := leastconntest.Dial(leastconntest.ChannelConfig{
				ServiceConfig: `{"loadBalancingConfig":[{"` + policy + `":{}}]}`, Endpoints: leastconntest.Endpoints(ns...),
			})
			require.NoError(b, err)
			defer c.Close()
			require.NoError(b, c.WaitServed(b.Context(), ns...))
			took := make([]time.Duration, b.N)
			var next atomic.Int64
			b.ResetTimer()
			var callers sync.WaitGroup
			for range 40 {
				callers.Go(func() {
					for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
						begun := time.Now()
						if _, err := c.Unary(b.Context()); err != nil {
							b.Errorf("Unary: %v", err)
						}
						took[i] = time.Since(begun)
					}
				})
			}
			callers.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[(len(took)*99)/100].Milliseconds()), "p99-ms")
			a := float64(sums[0].Load()) / float64(ns[0].Started())
			b.ReportMetric(100*math.Abs(a-float64(sums[1].Load())/float64(max(1, ns[1].Started())))/a, "%apart")
		})
	}
}
