package leastconnbalancer_test

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	estats "google.golang.org/grpc/experimental/stats"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Labels of the metrics.
const (
	targetLabel   = "grpc.target"
	localityLabel = "grpc.lb.locality"
	endpointLabel = "grpc.lb.least_conn.endpoint"
	stateLabel    = "grpc.lb.least_conn.state"
)

// metric returns the full name of one.
func metric(name string) string { return "grpc.lb.least_conn." + name }

// countRecorder records a channel's metrics, and knows what the policy has given
// it so far without asking for more.
type countRecorder struct {
	*leastconntest.Recorder
	keeps bool // reporters, whatever is done to stop them

	mu       sync.Mutex
	counts   map[string]int
	kept     []estats.AsyncMetricReporter
	live     map[*estats.AsyncMetricReporter]bool
	stopped  int
	recorded int // calls
}

func newCountRecorder() *countRecorder {
	return &countRecorder{
		Recorder: leastconntest.NewRecorder(), counts: map[string]int{}, live: map[*estats.AsyncMetricReporter]bool{},
	}
}

// recorded adds a recorder of the metrics to a channel's config.
func recorded(cfg leastconntest.ChannelConfig) (leastconntest.ChannelConfig, *countRecorder) {
	r := newCountRecorder()
	cfg.DialOptions = append(slices.Clone(cfg.DialOptions), grpc.WithStatsHandler(r))
	return cfg, r
}

func (r *countRecorder) RecordInt64Count(h *estats.Int64CountHandle, by int64, labels ...string) {
	r.Recorder.RecordInt64Count(h, by, labels...)
	name, ours := strings.CutPrefix(h.Descriptor().Name, metric(""))
	if !ours {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorded++
	if by != 0 {
		r.counts[name] += int(by)
	}
}

func (r *countRecorder) RegisterAsyncReporter(reporter estats.AsyncMetricReporter, of ...estats.AsyncMetric) func() {
	stop := r.Recorder.RegisterAsyncReporter(reporter, of...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keeps {
		r.kept = append(r.kept, reporter)
		stop = func() {}
	}
	key := &reporter
	r.live[key] = true
	return func() {
		stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.live, key)
		r.stopped++
	}
}

// seen returns the counters as recorded so far.
func (r *countRecorder) seen() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counts)
}

// counters collects, and returns all that have counted something.
func (r *countRecorder) counters() map[string]int {
	r.Collect()
	return r.seen()
}

// value returns that of the only series with the labels, -1 without one.
func (r *countRecorder) value(name string, labels ...string) int {
	v, ok := r.Value(metric(name), labels...)
	if !ok {
		return -1
	}
	return int(v)
}

// inFlight returns what the gauge shows by endpoint, "" for the sum.
func (r *countRecorder) inFlight() map[string]int { return r.by("in_flight", endpointLabel) }

// states returns how many endpoints are in each state.
func (r *countRecorder) states() map[string]int { return r.by("endpoints", stateLabel) }

// by returns a metric's series by a label.
func (r *countRecorder) by(name, label string) map[string]int {
	values := map[string]int{}
	for _, s := range r.Collect() {
		if s.Metric.Name == metric(name) {
			values[s.Label(label)] += int(s.Value)
		}
	}
	return values
}

// gauges collects the series of the gauges.
func (r *countRecorder) gauges() []leastconntest.Sample {
	return r.ofType(estats.MetricTypeIntAsyncGauge)
}

func (r *countRecorder) ofType(is estats.MetricType) []leastconntest.Sample {
	return slices.DeleteFunc(r.Collect(), func(s leastconntest.Sample) bool {
		return s.Metric.Type != is || !strings.HasPrefix(s.Metric.Name, metric(""))
	})
}
