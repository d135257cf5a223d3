package leastconnbalancer

import (
	"google.golang.org/grpc/experimental/stats"
	grpcstats "google.golang.org/grpc/stats"

	"github.com/leastconn/grpc-leastconn/state"
)

// Labels of the policy's metrics, besides grpc.target.
const (
	labelTarget   = "grpc.target"
	labelLocality = "grpc.lb.locality"
	labelEndpoint = "grpc.lb.least_conn.endpoint"
	labelState    = "grpc.lb.least_conn.state"
)

// The counters of a channel. Like the gauges they are off until a stats handler
// such as grpc's opentelemetry is told their names.
var (
	picksCount                  = counter("picks", "{pick}", "RPC attempts that were given an endpoint")
	picksQueuedCount            = counter("picks_queued", "{rpc}", "RPCs that had to wait because all endpoints were at their maxInFlight")
	retriesToOtherEndpointCount = counter("retries_to_other_endpoint", "{pick}", "retries that were sent to another endpoint than the attempts before; an RPC that has tried all endpoints starts over")
	penaltiesCount              = counter("penalties", "{penalty}", "attempts that failed soon after their start and weigh on their endpoint for failurePenalty")
	doubleReleasesCount         = counter("double_releases", "{release}", "ends of an RPC attempt that were reported twice; a bug of gRPC or of a policy above this one, without effect on the counts")
)

// The gauges of a resource key in this process: channels that share it report
// the same values.
var (
	inFlightGauge = gauge("in_flight", "{rpc}",
		"RPCs in flight in this process by endpoint; without the endpoint label, or with an empty one, the sum", labelLocality, labelEndpoint)
	endpointsGauge   = stateGauge("endpoints", "{endpoint}", "endpoints by state: ready, draining, not_ready, or departed with RPCs in flight")
	queueLengthGauge = gauge("queue_length", "{rpc}", "RPCs that wait because all endpoints are at their maxInFlight", labelLocality)
	imbalanceGauge   = gauge("imbalance", "{rpc}",
		"most minus fewest RPCs in flight over the ready endpoints of the first usable priority level, each divided by its weight relative to their mean", labelLocality)
	oldestGauge = gauge("oldest_in_flight_age", "s", "age of the oldest RPC attempt in flight", labelLocality)
)

// Metrics returns the names of the policy's metrics, which are off until a stats
// handler is told them:
//
//	opentelemetry.MetricsOptions{Metrics: opentelemetry.DefaultMetrics().Join(leastconnbalancer.Metrics()), …}
//
// The optional label "grpc.lb.least_conn.endpoint" splits the gauge of RPCs in
// flight by endpoint. Gauges are of all that the process has in flight under a
// resource key; channels that share one report the same, so take the maximum,
// never a sum. With 10,000 endpoints what channels report in one collection may be up
// to 200 ms old, with more up to a second.
func Metrics() *grpcstats.MetricSet {
	var names []string
	for _, c := range counts {
		names = append(names, c.handle.Descriptor().Name)
	}
	for _, g := range gauges {
		names = append(names, g.Descriptor().Name)
	}
	return grpcstats.NewMetricSet(names...)
}

// counts are all counters, with what each of them shows.
var counts = []struct {
	handle *stats.Int64CountHandle
	of     func(state.Counters) uint64
}{
	{picksCount, func(c state.Counters) uint64 { return c.Picks }},
	{picksQueuedCount, func(c state.Counters) uint64 { return c.Queued }},
	{retriesToOtherEndpointCount, func(c state.Counters) uint64 { return c.RetriesToOtherEndpoint }},
	{penaltiesCount, func(c state.Counters) uint64 { return c.Penalties }},
	{doubleReleasesCount, func(c state.Counters) uint64 { return c.DoubleReleases }},
}

// gauges are all of them, for registration.
var gauges = []stats.AsyncMetric{inFlightGauge, endpointsGauge, queueLengthGauge, imbalanceGauge, oldestGauge}

func descriptor(name, unit, description string, required, optional []string) stats.MetricDescriptor {
	return stats.MetricDescriptor{
		Name: "grpc.lb.least_conn." + name, Unit: unit, Description: "EXPERIMENTAL. " + description + ".",
		Labels: required, OptionalLabels: optional,
	}
}

func counter(name, unit, description string) *stats.Int64CountHandle {
	return stats.RegisterInt64Count(descriptor(name, unit, description, []string{labelTarget}, []string{labelLocality}))
}

func gauge(name, unit, description string, optional ...string) *stats.Int64AsyncGaugeHandle {
	return stats.RegisterInt64AsyncGauge(descriptor(name, unit, description, []string{labelTarget}, optional))
}

func stateGauge(name, unit, description string) *stats.Int64AsyncGaugeHandle {
	return stats.RegisterInt64AsyncGauge(descriptor(name, unit, description, []string{labelTarget, labelState}, []string{labelLocality}))
}
