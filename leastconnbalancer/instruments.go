package leastconnbalancer

import (
	"slices"

	"google.golang.org/grpc/experimental/stats"
	grpcstats "google.golang.org/grpc/stats"

	"github.com/leastconn/grpc-leastconn/state"
)

// Labels of the policy's metrics, besides grpc.target.
const (
	labelTarget         = "grpc.target"
	labelLocality       = "grpc.lb.locality"
	labelBackendService = "grpc.lb.backend_service" // gRPC's name for an xDS cluster
	labelResourceKey    = "grpc.lb.least_conn.resource_key"
	labelEndpoint       = "grpc.lb.least_conn.endpoint"
	labelState          = "grpc.lb.least_conn.state"
	labelReason         = "grpc.lb.least_conn.reason"
)

// The counters of a channel. Like the gauges they are off until a stats handler
// such as grpc's opentelemetry is told their names.
var (
	picksCount                  = counter("picks", "{pick}", "RPC attempts that were given an endpoint, by endpoint", labelEndpoint)
	picksQueuedCount            = counter("picks_queued", "{rpc}", "RPCs that had to wait because all endpoints were at their maxInFlight")
	retriesToOtherEndpointCount = counter("retries_to_other_endpoint", "{pick}", "retries that were sent to another endpoint than the attempts before; an RPC that has tried all endpoints starts over")
	penaltiesCount              = counter("penalties", "{penalty}", "attempts that failed soon after their start and weigh on their endpoint for failurePenalty, by endpoint", labelEndpoint)
	doubleReleasesCount         = counter("double_releases", "{release}", "ends of an RPC attempt that were reported twice; a bug of gRPC or of a policy above this one, without effect on the counts")
)

// The counters of a channel by why streams are asked to move.
var (
	movesAskedCount   = reasonCounter("moves_asked", "streams of sessions that were asked to go to another endpoint, by reason: level, draining, departed, priority, connection, not_ready")
	movesDoneCount    = reasonCounter("moves_done", "streams that were asked to move and have done so, by reason")
	movesGivenUpCount = reasonCounter("moves_given_up", "streams that were asked to move and have not done so within 10 s, by reason; those that were left to stay and those that have ended")
)

// The gauges of a target in this process: its channels report the same values.
var (
	inFlightGauge = gauge("in_flight", "{rpc}",
		"RPCs in flight in this process by endpoint; without the endpoint label, or with an empty one, the sum", labelEndpoint)
	endpointsGauge   = stateGauge("endpoints", "{endpoint}", "endpoints by state: ready, draining, not_ready, or departed with RPCs in flight")
	queueLengthGauge = gauge("queue_length", "{rpc}", "RPCs that wait because all endpoints are at their maxInFlight")
	imbalanceGauge   = gauge("imbalance", "{rpc}",
		"most minus fewest RPCs in flight on the ready endpoints of the first usable priority level that are neither full nor start slowly, "+
			"each divided by its weight relative to their mean; the fewest with penalties")
	oldestGauge      = gauge("oldest_in_flight_age", "s", "age of the oldest RPC attempt in flight")
	maxInFlightGauge = gauge("max_in_flight", "{rpc}",
		"maxInFlight of an endpoint, the lowest of its channels', by endpoint, of those that have one; without the endpoint label, or with an empty one, their sum", labelEndpoint)
	effectiveWeightGauge = gauge("effective_weight", "{thousandth}",
		"weight that an endpoint is chosen by, slow start included, in thousandths, by endpoint; 0 unless it is ready and takes RPCs; without the endpoint label, or with an empty one, the sum", labelEndpoint)
)

// The gauges of what servers report of the load that others have there. They are there
// where the configuration has reports.
var (
	othersInFlightGauge = gauge("others_in_flight", "{rpc}",
		"RPCs that others have in flight, as servers last reported, by endpoint; without the endpoint label, or with an empty one, the sum", labelEndpoint)
	reportAgeGauge = gauge("report_age", "s",
		"age of the last report by endpoint; without the endpoint label, or with an empty one, of the oldest", labelEndpoint)
	silentEndpointsGauge = gauge("silent_endpoints", "{endpoint}", "ready endpoints that have not reported for three intervals, or not the truth")
	fleetImbalanceGauge  = gauge("fleet_imbalance", "{rpc}",
		"as imbalance, in RPCs, with what others have in flight counted, of the endpoints whose report counts")
)

// Metrics returns the names of the policy's metrics, which are off until a stats
// handler is told them:
//
//	opentelemetry.MetricsOptions{Metrics: opentelemetry.DefaultMetrics().Join(leastconnbalancer.Metrics()), …}
//
// Optional labels are "grpc.lb.locality" and "grpc.lb.backend_service", xDS's locality and cluster (the latter
// with the import of package xdscluster), "grpc.lb.least_conn.resource_key", and, for what endpoints have in
// flight, their picks, penalties, caps, weights and reports, "grpc.lb.least_conn.endpoint". A counter's series
// by endpoint stays when the endpoint leaves, as series of counters do: a process whose endpoints have ever new
// addresses has ever more of them.
//
// Gauges are of the endpoints that channels of the process list for the target, with all that the process
// has in flight there under the resource key, and of those that have left the list with RPCs in flight.
// Each endpoint of a resource key counts once, whichever labels are off. All channels of a target report
// the same, so take the maximum, never a sum. Where an optional label has several values, there is also a
// series in which it is empty: that of all of them. Imbalance is the most that one locality, cluster and
// resource key has. With 10,000 endpoints what channels report in one collection may be up
// to 200 ms old, with more up to a second.
func Metrics() *grpcstats.MetricSet {
	var names []string
	for _, c := range counts {
		if name := c.handle.Descriptor().Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, g := range gauges {
		names = append(names, g.Descriptor().Name)
	}
	return grpcstats.NewMetricSet(names...)
}

// count is a counter, or one reason's part of it, with what it shows.
type count struct {
	handle *stats.Int64CountHandle
	labels []string // after the target
	of     func(state.Counters) uint64

	// ofEndpoint is there in the place of of where the last label is the endpoint.
	ofEndpoint func(state.EndpointCounts) uint64
}

// counts are all counters.
var counts = append([]count{
	{handle: picksCount, ofEndpoint: func(c state.EndpointCounts) uint64 { return c.Picks }},
	{handle: picksQueuedCount, of: func(c state.Counters) uint64 { return c.Queued }},
	{handle: retriesToOtherEndpointCount, of: func(c state.Counters) uint64 { return c.RetriesToOtherEndpoint }},
	{handle: penaltiesCount, ofEndpoint: func(c state.EndpointCounts) uint64 { return c.Penalties }},
	{handle: doubleReleasesCount, of: func(c state.Counters) uint64 { return c.DoubleReleases }},
}, moveCounts()...)

func moveCounts() (all []count) {
	for handle, of := range map[*stats.Int64CountHandle]func(state.Counters) state.MovesByReason{
		movesAskedCount:   func(c state.Counters) state.MovesByReason { return c.MovesAsked },
		movesDoneCount:    func(c state.Counters) state.MovesByReason { return c.MovesDone },
		movesGivenUpCount: func(c state.Counters) state.MovesByReason { return c.MovesGivenUp },
	} {
		for _, why := range state.MoveReasons {
			all = append(all, count{handle: handle, labels: []string{why.String()}, of: func(c state.Counters) uint64 { return of(c).Of(why) }})
		}
	}
	return all
}

// gauges are all of them, for registration.
var gauges = []stats.AsyncMetric{inFlightGauge, endpointsGauge, queueLengthGauge, imbalanceGauge, oldestGauge, maxInFlightGauge, effectiveWeightGauge,
	othersInFlightGauge, reportAgeGauge, silentEndpointsGauge, fleetImbalanceGauge}

func descriptor(name, unit, description string, required []string, optional ...string) stats.MetricDescriptor {
	return stats.MetricDescriptor{
		Name: "grpc.lb.least_conn." + name, Unit: unit, Description: "EXPERIMENTAL. " + description + ".",
		Labels: required, OptionalLabels: slices.Concat(optionalLabels, optional),
	}
}

func counter(name, unit, description string, optional ...string) *stats.Int64CountHandle {
	return stats.RegisterInt64Count(descriptor(name, unit, description, []string{labelTarget}, optional...))
}

func reasonCounter(name, description string) *stats.Int64CountHandle {
	return stats.RegisterInt64Count(descriptor(name, "{stream}", description, []string{labelTarget, labelReason}))
}

func gauge(name, unit, description string, optional ...string) *stats.Int64AsyncGaugeHandle {
	return stats.RegisterInt64AsyncGauge(descriptor(name, unit, description, []string{labelTarget}, optional...))
}

func stateGauge(name, unit, description string) *stats.Int64AsyncGaugeHandle {
	return stats.RegisterInt64AsyncGauge(descriptor(name, unit, description, []string{labelTarget, labelState}))
}
