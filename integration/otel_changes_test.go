package integration

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Scrapes, lists, configurations, channels that come and go, and RPCs all at
// once end, and lose no pick.
func TestScrapesAmidChanges(t *testing.T) {
	m := newTelemetry(t, endpointLabel)
	ns := startNodes(t, "a", "b", "c")
	c := m.dial(leastconntest.ChannelConfig{Target: "amid changes"}, ns...)
	waitReady(t, c, ns...)
	var answered atomic.Int64
	var over atomic.Bool
	var changing, calling sync.WaitGroup
	steadily := func(do func(i int)) { // while RPCs run
		changing.Go(func() {
			for i := 0; !over.Load(); i++ {
				do(i)
				seen := answered.Load()
				wait(t, "RPCs run on", func() bool { return over.Load() || answered.Load() > seen+3 })
			}
		})
	}
	steadily(func(int) { m.scrape() })
	steadily(func(i int) {
		cfg := leastconnbalancer.Config{ResourceKey: fmt.Sprint("key ", i%3), MaxInFlight: uint32(i % 2 * 100)}
		assert.NoError(t, c.UpdateConfig(cfg.ServiceConfig(), leastconntest.Endpoints(ns[i%2:]...)...))
	})
	steadily(func(int) {
		other := m.dial(leastconntest.ChannelConfig{Target: "another"}, ns...)
		_, err := other.Unary(t.Context())
		assert.NoError(t, err)
		assert.NoError(t, other.Close())
	})
	for range 3 {
		calling.Go(func() {
			for range 100 {
				_, err := c.Unary(t.Context())
				assert.NoError(t, err)
				answered.Add(1)
			}
		})
	}
	calling.Wait()
	over.Store(true)
	changing.Wait()
	picks := m.by("picks_total", "grpc_target")
	require.Equal(t, float64(300), picks[c.Conn().CanonicalTarget()])
	for target, n := range m.by("double_releases_total", "grpc_target") {
		require.Zero(t, n, target)
	}
}
