package leastconnbalancer_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// BenchmarkWaiters measures RPCs over TCP that wait for room, with so many waiting at a time: each op is one RPC served.
// gRPC wakes all that wait whenever a picker is published, so what a wake-up costs grows with their number.
func BenchmarkWaiters(b *testing.B) {
	for _, waiting := range []int{0, 10, 100, 1000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			const room = 8 // on two nodes
			ns, err := leastconntest.StartNodes(leastconntest.Options{}, "a", "b")
			require.NoError(b, err)
			defer leastconntest.CloseNodes(ns...)
			cfg := guarded(capped(room / 2))
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
