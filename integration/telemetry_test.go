package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/stats/opentelemetry"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// exported is what the metrics are called in Prometheus.
const exported = "grpc_lb_least_conn_"

// endpointLabel is the optional label of what there is by endpoint.
const endpointLabel = "grpc.lb.least_conn.endpoint"

// telemetry exports the metrics of channels as programs do: gRPC's plugin,
// OpenTelemetry's SDK, its Prometheus exporter, and a page to scrape.
type telemetry struct {
	*testing.T
	options opentelemetry.MetricsOptions
	page    *httptest.Server
}

// newTelemetry turns the policy's metrics on.
func newTelemetry(t *testing.T, optionalLabels ...string) *telemetry {
	return telemetryOf(t, opentelemetry.DefaultMetrics().Join(leastconnbalancer.Metrics()), optionalLabels...)
}

func telemetryOf(t *testing.T, metrics *stats.MetricSet, optionalLabels ...string) *telemetry {
	t.Helper()
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	require.NoError(t, err)
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	page := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(func() {
		page.Close()
		require.NoError(t, provider.Shutdown(t.Context()))
	})
	return &telemetry{t, opentelemetry.MetricsOptions{MeterProvider: provider, Metrics: metrics, OptionalLabels: optionalLabels}, page}
}

// dial opens a channel that reports.
func (m *telemetry) dial(cfg leastconntest.ChannelConfig, nodes ...*leastconntest.Node) *env {
	m.Helper()
	cfg.DialOptions = append(cfg.DialOptions, opentelemetry.DialOption(opentelemetry.Options{MetricsOptions: m.options}))
	return dial(m.T, cfg, all(nodes...)...)
}

// dialReady opens a channel that reports and waits until it can use the nodes.
func (m *telemetry) dialReady(target string, nodes ...*leastconntest.Node) *env {
	m.Helper()
	e := m.dial(leastconntest.ChannelConfig{Target: target}, nodes...)
	e.waitReady(all(nodes...)...)
	return e
}

// sample is one line of a scrape.
type sample struct {
	name   string
	kind   string
	labels map[string]string
	value  float64
}

// String is the line without its value.
func (s sample) String() string {
	var labels []string
	for name, value := range s.labels {
		labels = append(labels, fmt.Sprintf("%s=%q", name, value))
	}
	slices.Sort(labels)
	return s.kind + " " + exported + s.name + "{" + strings.Join(labels, ",") + "}"
}

// scrape returns the policy's samples. Labels that name the SDK's scope are left
// out.
func (m *telemetry) scrape() (samples []sample) {
	m.Helper()
	answer, err := http.Get(m.page.URL)
	require.NoError(m, err)
	defer answer.Body.Close()
	require.Equal(m, http.StatusOK, answer.StatusCode)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	require.NoError(m, err)
	for name, family := range families {
		if !strings.HasPrefix(name, exported) {
			continue
		}
		for _, line := range family.GetMetric() {
			s := sample{strings.TrimPrefix(name, exported), strings.ToLower(family.GetType().String()), map[string]string{}, valueOf(line)}
			for _, l := range line.GetLabel() {
				if !strings.HasPrefix(l.GetName(), "otel_scope") {
					s.labels[l.GetName()] = l.GetValue()
				}
			}
			samples = append(samples, s)
		}
	}
	return samples
}

func valueOf(line *dto.Metric) float64 {
	return line.GetCounter().GetValue() + line.GetGauge().GetValue() // one of them is there
}

// by returns a metric's values by a label.
func (m *telemetry) by(name, label string) map[string]float64 {
	m.Helper()
	values := map[string]float64{}
	for _, s := range m.scrape() {
		if s.name == name {
			_, twice := values[s.labels[label]]
			require.False(m, twice, "two series of %s with the same %s", name, label)
			values[s.labels[label]] = s.value
		}
	}
	return values
}

// sum returns the sums of a metric's values by a label.
func (m *telemetry) sum(name, label string) map[string]float64 {
	m.Helper()
	sums := map[string]float64{}
	for _, s := range m.scrape() {
		if s.name == name {
			sums[s.labels[label]] += s.value
		}
	}
	return sums
}

// inFlight is the in-flight gauge by endpoint.
func (m *telemetry) inFlight() map[string]float64 {
	m.Helper()
	return m.by("in_flight", strings.ReplaceAll(endpointLabel, ".", "_"))
}

// handled is what the gauge should show: what the nodes handle now.
func handled(nodes ...*leastconntest.Node) map[string]float64 {
	want := map[string]float64{"": 0}
	for _, n := range nodes {
		want[n.Addr()] = float64(n.Live())
		want[""] += float64(n.Live())
	}
	return want
}
