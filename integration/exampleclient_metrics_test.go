package integration

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// The example's own exposition is valid, whatever an address looks like, and has
// the names that OpenTelemetry's exporter gives.
func TestExampleMetricsAreTheExportersMetrics(t *testing.T) {
	const hostile = `unix:no/such "socket\ of ours`
	file := newNodeFile(t)
	require.NoError(t, os.WriteFile(file.path, fmt.Appendf(nil, "nodes: [{address: %q}]\n", hostile), 0o600))
	c := startClient(t, buildClient(t), "-target", file.target(), "-every", "10ms")
	wait(t, "the address is known", func() bool { return strings.Contains(c.get("/metrics", ""), "no/such") })

	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(c.get("/metrics", "")))
	require.NoError(t, err)
	var names, endpoints []string
	for name, family := range families {
		if !strings.HasPrefix(name, exported) {
			continue
		}
		names = append(names, strings.ToLower(family.GetType().String())+" "+name)
		require.NotEmpty(t, family.GetHelp())
		for _, s := range family.GetMetric() {
			for _, l := range s.GetLabel() {
				if l.GetName() == "grpc_lb_least_conn_endpoint" {
					endpoints = append(endpoints, l.GetValue())
				}
			}
		}
	}
	require.ElementsMatch(t, []string{"", hostile}, endpoints)

	golden, err := os.ReadFile("testdata/metrics.txt")
	require.NoError(t, err)
	want := regexp.MustCompile(`(?m)^[^{]+`).FindAllString(string(golden), -1)
	slices.Sort(want)
	slices.Sort(names)
	require.Equal(t, slices.Compact(want), names)
}
