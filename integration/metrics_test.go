package integration

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/stats/opentelemetry"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Names, types and labels are what dashboards are built on.
func TestMetricsAsExported(t *testing.T) {
	m := newTelemetry(t, endpointLabel)
	ns := startNodes(t, "a")
	m.dialReady("exported", ns...)
	var lines []string
	for _, s := range m.scrape() {
		lines = append(lines, strings.Replace(s.String(), ns[0].Addr(), "ADDRESS", 1)+"\n")
	}
	slices.Sort(lines)
	golden, err := os.ReadFile("testdata/metrics.txt")
	require.NoError(t, err)
	require.Equal(t, string(golden), strings.Join(lines, ""))
}

func TestMetricsAreOffByDefault(t *testing.T) {
	m := telemetryOf(t, opentelemetry.DefaultMetrics(), endpointLabel)
	ns := startNodes(t, "a")
	e := m.dialReady("", ns...)
	e.hold(3, map[string]int{"a": 3})
	require.Empty(t, m.scrape())
}

// A switch turns the endpoint label off; what is left is the sum.
func TestMetricsWithoutTheEndpointLabel(t *testing.T) {
	m := newTelemetry(t)
	ns := startNodes(t, "a", "b", "c")
	e := m.dialReady("", ns...)
	e.hold(6, map[string]int{"a": 2, "b": 2, "c": 2})
	require.Equal(t, map[string]float64{"": 6}, m.inFlight())
	for _, s := range m.scrape() {
		for _, n := range ns {
			require.NotContains(t, s.String(), n.Addr(), "an address")
		}
	}
}

// The series of an endpoint that is gone and drained is not in the next scrape.
func TestSeriesEnd(t *testing.T) {
	m := newTelemetry(t, endpointLabel)
	ns := startNodes(t, "a", "b")
	e := m.dialReady("", ns...)
	held := e.hold(4, map[string]int{"a": 2, "b": 2})
	e.list(ns[1])
	require.Equal(t, handled(ns...), m.inFlight())
	require.Equal(t, map[string]float64{"ready": 1, "draining": 0, "not_ready": 0, "departed": 1}, m.by("endpoints", "grpc_lb_least_conn_state"))
	require.NoError(t, leastconntest.EndAll(held))
	require.Equal(t, handled(ns[1]), m.inFlight())
	require.Equal(t, map[string]float64{"ready": 1, "draining": 0, "not_ready": 0, "departed": 0}, m.by("endpoints", "grpc_lb_least_conn_state"))
	require.NoError(t, e.channel.Close())
	require.Empty(t, m.inFlight())
}

// Channels of one target are one series each, of the load that they share.
func TestChannelsThatShareAreOneSeries(t *testing.T) {
	m := newTelemetry(t, endpointLabel)
	ns := startNodes(t, "a", "b")
	cfg := leastconntest.ChannelConfig{Target: "shared"}
	first, second := m.dial(cfg, ns...), m.dial(cfg, ns...)
	first.waitReadyOfTwo(all(ns...)...)
	first.hold(4, map[string]int{"a": 2, "b": 2})
	second.hold(2, map[string]int{"a": 1, "b": 1})
	require.Equal(t, handled(ns...), m.inFlight())
	require.Equal(t, map[string]float64{first.conn.CanonicalTarget(): 6}, m.sum("picks_total", "grpc_target"))
	require.NoError(t, first.channel.Close())
	wait(t, "its streams are released", func() bool {
		shown := m.inFlight()
		return shown[""] == 2 && maps.Equal(handled(ns...), shown)
	})
}

// Scrapes, lists, configurations, channels that come and go, and RPCs all at
// once end, and lose no pick.
func TestScrapesAmidChanges(t *testing.T) {
	m := newTelemetry(t, endpointLabel)
	ns := startNodes(t, "a", "b", "c")
	e := m.dialReady("amid changes", ns...)
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
		assert.NoError(t, e.channel.UpdateConfig(cfg.ServiceConfig(), leastconntest.Endpoints(ns[i%2:]...)...))
	})
	steadily(func(int) {
		other := m.dial(leastconntest.ChannelConfig{Target: "another"}, ns...)
		_, err := other.unary()
		assert.NoError(t, err)
		assert.NoError(t, other.channel.Close())
	})
	for range 3 {
		calling.Go(func() {
			for range 100 {
				_, err := e.unary()
				assert.NoError(t, err)
				answered.Add(1)
			}
		})
	}
	calling.Wait()
	over.Store(true)
	changing.Wait()
	picks := m.sum("picks_total", "grpc_target")
	require.Equal(t, float64(300), picks[e.conn.CanonicalTarget()])
	for target, n := range m.by("double_releases_total", "grpc_target") {
		require.Zero(t, n, target)
	}
}
