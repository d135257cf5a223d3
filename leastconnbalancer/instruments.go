package leastconnbalancer

import "google.golang.org/grpc/experimental/stats"

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
	picksCount          = counter("picks", "{pick}", "RPC attempts that were given an endpoint")
	picksQueuedCount    = counter("picks_queued", "{rpc}", "RPCs that had to wait because all endpoints were at their maxInFlight")
	picksElsewhereCount = counter("picks_elsewhere", "{pick}", "later attempts of an RPC that went to an endpoint it had not tried")
	penaltiesCount      = counter("penalties", "{penalty}", "attempts that failed soon after their start and weigh on their endpoint for failurePenalty")
	doubleReleasesCount = counter("double_releases", "{release}", "ends of an RPC attempt that were reported twice; a bug of gRPC or of a policy above this one, without effect on the counts")
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
