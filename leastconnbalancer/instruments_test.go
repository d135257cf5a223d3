package leastconnbalancer_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	estats "google.golang.org/grpc/experimental/stats"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

var metricTypes = map[estats.MetricType]string{
	estats.MetricTypeIntCount:      "counter",
	estats.MetricTypeIntAsyncGauge: "gauge",
}

// Dashboards and alerts name metrics, labels and units: they stay as they are.
func TestMetricsAreStable(t *testing.T) {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(leastconnbalancer.Metrics().Metrics())) {
		d := estats.DescriptorForMetric(name)
		require.NotNil(t, d, name)
		require.False(t, d.Default, "%s is off until it is named", name)
		require.NotEmpty(t, d.Description, name)
		lines = append(lines, fmt.Sprintf("%s %s %s; labels %s; optional %s\n",
			d.Name, metricTypes[d.Type], d.Unit, strings.Join(d.Labels, ", "), strings.Join(d.OptionalLabels, ", ")))
	}
	golden, err := os.ReadFile("testdata/metrics.txt")
	require.NoError(t, err)
	require.Equal(t, string(golden), strings.Join(lines, ""))
}

// Metrics leaves out none that the policy records.
func TestMetricsAreAll(t *testing.T) {
	l := newLab(t)
	cfg, m := metered(leastconntest.ChannelConfig{})
	l.dialWith(cfg, l.nodes("a")...)
	seen := map[string]bool{}
	for _, s := range m.Collect() {
		if strings.HasPrefix(s.Metric.Name, metric("")) {
			seen[s.Metric.Name] = true
		}
	}
	require.Equal(t, leastconnbalancer.Metrics().Metrics(), seen)
}
