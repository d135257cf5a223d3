package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	estats "google.golang.org/grpc/experimental/stats"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Names have the format's characters, values and help its escapes.
func TestExposition(t *testing.T) {
	count := &estats.MetricDescriptor{
		Name: "a.b-ç", Unit: "{pick}", Description: "say \"x\\y\"\nonce", Type: estats.MetricTypeIntCount,
		Labels: []string{"grpc.target"}, OptionalLabels: []string{"grpc.lb.locality"},
	}
	age := &estats.MetricDescriptor{Name: "age", Unit: "s", Description: "seconds", Type: estats.MetricTypeIntAsyncGauge}
	text := string(exposition([]leastconntest.Sample{
		{Metric: count, Labels: []string{"dns:///a\\b\"c\"\nd", ""}, Value: 3},
		{Metric: count, Labels: []string{"not UTF-8: \xff{}=,", "x"}, Value: 0},
		{Metric: age, Value: -1},
	}))
	require.Equal(t, strings.Join([]string{
		`# HELP a_b___total say "x\\y"\nonce`,
		`# TYPE a_b___total counter`,
		`a_b___total{grpc_target="dns:///a\\b\"c\"\nd",grpc_lb_locality=""} 3`,
		"a_b___total{grpc_target=\"not UTF-8: \uFFFD{}=,\",grpc_lb_locality=\"x\"} 0",
		`# HELP age_seconds seconds`,
		`# TYPE age_seconds gauge`,
		`age_seconds -1`,
		``,
	}, "\n"), text)
	require.Empty(t, exposition(nil))
}
