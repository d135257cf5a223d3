package leastconntest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/stats"
)

// Recorder keeps the metrics that channels record through gRPC's instrument registry, all of them, with all of their
// labels, as a metrics plugin would. One Recorder may serve several channels. All methods may be called by several
// goroutines at once.
type Recorder struct {
	estats.UnimplementedMetricsRecorder

	mu        sync.Mutex
	counts    map[string]Sample
	reporters map[*estats.AsyncMetricReporter]struct{}
}

// Sample is one time series' value.
type Sample struct {
	Metric *estats.MetricDescriptor
	Labels []string // values, of Metric.Labels and then Metric.OptionalLabels
	Value  int64
}

// Label returns the value of a label, "" if the metric does not have it.
func (s Sample) Label(name string) string {
	if i := slices.Index(s.Names(), name); i >= 0 {
		return s.Labels[i]
	}
	return ""
}

// Names returns the names of the labels.
func (s Sample) Names() []string { return slices.Concat(s.Metric.Labels, s.Metric.OptionalLabels) }

func (s Sample) key() string { return s.Metric.Name + "\x00" + strings.Join(s.Labels, "\x00") }

// NewRecorder returns a Recorder that has nothing yet.
func NewRecorder() *Recorder {
	return &Recorder{counts: map[string]Sample{}, reporters: map[*estats.AsyncMetricReporter]struct{}{}}
}

// DialOption lets a channel record here.
func (r *Recorder) DialOption() grpc.DialOption { return grpc.WithStatsHandler(r) }

// RecordInt64Count implements gRPC's MetricsRecorder.
func (r *Recorder) RecordInt64Count(h *estats.Int64CountHandle, by int64, labels ...string) {
	s := Sample{Metric: h.Descriptor(), Labels: slices.Clone(labels)}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Value = r.counts[s.key()].Value + by
	r.counts[s.key()] = s
}

// RegisterAsyncReporter implements gRPC's MetricsRecorder.
func (r *Recorder) RegisterAsyncReporter(reporter estats.AsyncMetricReporter, _ ...estats.AsyncMetric) func() {
	key := &reporter
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reporters[key] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.reporters, key)
	}
}

// Collect asks for the gauges and returns all series, ordered by metric and labels. Of a gauge that is reported several
// times with the same labels the last value counts.
func (r *Recorder) Collect() []Sample {
	r.mu.Lock()
	reporters := slices.Collect(maps.Keys(r.reporters))
	r.mu.Unlock()
	all := collection{}
	for _, reporter := range reporters {
		// An error is of one reporter; a metrics plugin passes over it, too.
		_ = (*reporter).Report(all)
	}
	r.mu.Lock()
	maps.Copy(all, r.counts)
	r.mu.Unlock()
	samples := make([]Sample, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		samples = append(samples, all[key])
	}
	return samples
}

// collection is series by key.
type collection map[string]Sample

func (c collection) RecordInt64AsyncGauge(h *estats.Int64AsyncGaugeHandle, value int64, labels ...string) {
	s := Sample{Metric: h.Descriptor(), Labels: slices.Clone(labels), Value: value}
	c[s.key()] = s
}

// Value collects and returns the series of a metric whose labels have these values, given as name, value, name, value;
// others may have any. Of several the values add up. found is false without one.
func (r *Recorder) Value(metric string, labels ...string) (value int64, found bool) {
	for _, s := range r.Collect() {
		if s.Metric.Name != metric {
			continue
		}
		matches := true
		for i := 0; i+1 < len(labels); i += 2 {
			matches = matches && s.Label(labels[i]) == labels[i+1]
		}
		if matches {
			value, found = value+s.Value, true
		}
	}
	return value, found
}

// TagRPC, HandleRPC, TagConn and HandleConn make it a stats.Handler, which is how a channel gets a recorder.
func (r *Recorder) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (r *Recorder) HandleRPC(context.Context, stats.RPCStats)                         {}
func (r *Recorder) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (r *Recorder) HandleConn(context.Context, stats.ConnStats)                       {}
