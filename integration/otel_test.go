package integration

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/stats/opentelemetry"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Names, types and labels are what dashboards are built on.
func TestMetricsAsExported(t *testing.T) {
	m := newTelemetry(t, endpointLabel)
	ns := startNodes(t, "a")
	c := m.dial(leastconntest.ChannelConfig{Target: "exported"}, ns...)
	waitReady(t, c, ns...)
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
	c := m.dial(leastconntest.ChannelConfig{}, ns...)
	waitReady(t, c, ns...)
	hold(t, c, 3)
	require.Empty(t, m.scrape())
}

func TestD89ScrapeIsWhatTheServersHandle(t *testing.T) {
	m := newTelemetry(t, endpointLabel)
	ns := startNodes(t, "a", "b", "c")
	c := m.dial(leastconntest.ChannelConfig{}, ns...)
	waitReady(t, c, ns...)
	var held []*leastconntest.Stream
	picks := 0
	for range 20 {
		opened := 1 + rand.IntN(9)
		more, err := c.OpenN(t.Context(), opened)
		require.NoError(t, err)
		held, picks = append(held, more...), picks+opened
		rand.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
		ended := rand.IntN(len(held))
		require.NoError(t, leastconntest.EndAll(held[:ended]))
		held = held[ended:]
		require.Equal(t, handled(ns...), m.inFlight())
		require.Equal(t, map[string]float64{c.Conn().CanonicalTarget(): float64(picks)}, m.by("picks_total", "grpc_target"))
	}
	require.NoError(t, leastconntest.EndAll(held))
	require.Equal(t, handled(ns...), m.inFlight())
}

// A switch turns the endpoint label off; what is left is the sum.
func TestD89WithoutTheEndpointLabel(t *testing.T) {
	m := newTelemetry(t)
	ns := startNodes(t, "a", "b", "c")
	c := m.dial(leastconntest.ChannelConfig{}, ns...)
	waitReady(t, c, ns...)
	hold(t, c, 7)
	require.Equal(t, map[string]float64{"": 7}, m.inFlight())
	for _, s := range m.scrape() {
		for _, n := range ns {
			require.NotContains(t, s.String(), n.Addr(), "an address")
		}
	}
}

// The series of an endpoint that is gone and drained is not in the next scrape.
func TestD89SeriesEnd(t *testing.T) {
	m := newTelemetry(t, endpointLabel)
	ns := startNodes(t, "a", "b")
	c := m.dial(leastconntest.ChannelConfig{}, ns...)
	waitReady(t, c, ns...)
	held, err := c.OpenN(t.Context(), 4)
	require.NoError(t, err)
	require.NoError(t, c.UpdateNodes(ns[1]))
	require.Equal(t, handled(ns...), m.inFlight())
	require.Equal(t, map[string]float64{"ready": 1, "draining": 0, "not_ready": 0, "departed": 1}, m.by("endpoints", "grpc_lb_least_conn_state"))
	require.NoError(t, leastconntest.EndAll(held))
	require.Equal(t, handled(ns[1]), m.inFlight())
	require.Equal(t, map[string]float64{"ready": 1, "draining": 0, "not_ready": 0, "departed": 0}, m.by("endpoints", "grpc_lb_least_conn_state"))
	require.NoError(t, c.Close())
	require.Empty(t, m.inFlight())
}

// Channels of one target are one series each, of the load that they share.
func TestChannelsThatShareAreOneSeries(t *testing.T) {
	m := newTelemetry(t, endpointLabel)
	ns := startNodes(t, "a", "b")
	cfg := leastconntest.ChannelConfig{Target: "shared"}
	one, two := m.dial(cfg, ns...), m.dial(cfg, ns...)
	for _, n := range ns {
		wait(t, "both can use "+n.Name(), func() bool {
			ms := node(t, one, n.Addr()).Members
			return len(ms) == 2 && ms[0].Ready && ms[1].Ready
		})
	}
	hold(t, one, 3)
	hold(t, two, 2)
	require.Equal(t, handled(ns...), m.inFlight())
	require.Equal(t, map[string]float64{one.Conn().CanonicalTarget(): 5}, m.by("picks_total", "grpc_target"))
	require.NoError(t, one.Close())
	wait(t, "its streams are released", func() bool {
		shown := m.inFlight()
		return shown[""] == 2 && maps.Equal(handled(ns...), shown)
	})
}
