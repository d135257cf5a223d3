package leastconnbalancer_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// A resolver may write into the slices that it sent before and send them again.
// gRPC's own policies hear that, and so does this one.
func TestListEditedInPlaceIsHeard(t *testing.T) {
	for _, policy := range []string{"round_robin", "least_conn"} {
		t.Run(policy, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ns, err := leastconntest.StartNodes(leastconntest.Options{}, "a", "b", "c")
			require.NoError(t, err)
			t.Cleanup(func() { leastconntest.CloseNodes(ns...) })
			list := leastconntest.Endpoints(ns[:2]...)
			c, err := leastconntest.Dial(leastconntest.ChannelConfig{
				ServiceConfig: `{"loadBalancingConfig":[{"` + policy + `":{}}]}`,
				Endpoints:     list,
			})
			require.NoError(t, err)
			t.Cleanup(func() { c.Close() })
			// answer waits until the servers named answer in turn, and no other does.
			answer := func(want ...string) {
				t.Helper()
				require.NoError(t, leastconntest.WaitFor(ctx, "answers", func() bool {
					got := map[string]bool{}
					for range 2 * len(ns) {
						name, err := c.Unary(ctx)
						require.NoError(t, err)
						got[name] = true
					}
					for _, name := range want {
						if !got[name] {
							return false
						}
					}
					return len(got) == len(want)
				}), "want %v", want)
			}
			answer("a", "b")

			list[0].Addresses[0].Addr = ns[2].Addr()
			require.NoError(t, c.Update(list...))
			answer("b", "c")

			if policy == "least_conn" { // round_robin has no weights
				list[1] = lcresolver.SetWeight(list[1], 0)
				require.NoError(t, c.Update(list...))
				answer("c")
			}
		})
	}
}
