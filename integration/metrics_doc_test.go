package integration

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// The document shows the code that turns the metrics on, byte by byte, and the
// code does so.
func TestVerifyDocTurnsMetricsOn(t *testing.T) {
	source, err := os.ReadFile("metrics_client_test.go")
	require.NoError(t, err)
	code, found := strings.CutPrefix(string(source), "package integration\n\n")
	require.True(t, found)
	doc, err := os.ReadFile("../docs/verify.md")
	require.NoError(t, err)
	require.Contains(t, string(doc), "```text\n"+code+"```\n")

	n := startNodes(t, "a")[0]
	registry := prometheus.NewRegistry()
	conn, err := dialMeasured("passthrough:///"+n.Addr(), registry)
	require.NoError(t, err)
	defer conn.Close()
	s, err := leastconntest.Open(t.Context(), conn)
	require.NoError(t, err)
	defer s.Cancel()
	families, err := registry.Gather()
	require.NoError(t, err)
	inFlight := map[string]float64{}
	for _, f := range families {
		if f.GetName() != exported+"in_flight" {
			continue
		}
		for _, series := range f.GetMetric() {
			for _, l := range series.GetLabel() {
				if l.GetName() == "grpc_lb_least_conn_endpoint" {
					inFlight[l.GetValue()] = series.GetGauge().GetValue()
				}
			}
		}
	}
	require.Equal(t, handled(n), inFlight)
}
