package leastconnbalancer

import (
	"math"
	"slices"

	"google.golang.org/grpc/experimental/stats"

	"github.com/leastconn/grpc-leastconn/state"
)

// optionalLabels are those that all of the policy's metrics have.
var optionalLabels = []string{labelLocality, labelBackendService, labelResourceKey}

// optionalValues returns the values of optionalLabels.
func optionalValues(l state.Labels, key string) []string { return []string{l.Locality, l.Cluster, key} }

// recordGauges records a series, with the states and endpoints that it is split by.
func recordGauges(to stats.AsyncMetricsRecorder, s *state.Series) {
	common := optionalValues(s.Labels, s.Key)
	all := append([]string{s.Target}, common...)
	byEndpoint := func(address string) []string { return append(slices.Clip(all), address) }
	capacity, weight := int64(0), 0.0
	for _, n := range s.ByAddress {
		inFlightGauge.Record(to, n.InFlight, byEndpoint(n.Address)...)
		effectiveWeightGauge.Record(to, thousandths(n.EffectiveWeight), byEndpoint(n.Address)...)
		weight += n.EffectiveWeight
		if n.MaxInFlight > 0 {
			maxInFlightGauge.Record(to, n.MaxInFlight, byEndpoint(n.Address)...)
			capacity += n.MaxInFlight
		}
	}
	// Last: where the endpoint label is off, all of these are one series, and the
	// last one is its value.
	inFlightGauge.Record(to, s.InFlight, byEndpoint("")...)
	effectiveWeightGauge.Record(to, thousandths(weight), byEndpoint("")...)
	if capacity > 0 {
		maxInFlightGauge.Record(to, capacity, byEndpoint("")...)
	}
	for _, is := range state.EndpointStates {
		endpointsGauge.Record(to, s.Endpoints[is], append([]string{s.Target, string(is)}, common...)...)
	}
	queueLengthGauge.Record(to, s.Waiting, all...)
	imbalanceGauge.Record(to, int64(math.Round(s.Imbalance)), all...)
	oldestGauge.Record(to, int64(s.OldestSeconds), all...)
	if s.Fleet.IntervalSeconds > 0 {
		recordFleet(to, s, all, byEndpoint)
	}
}

func thousandths(weight float64) int64 { return int64(math.Round(1000 * weight)) }

// recordFleet records what servers say of a series' endpoints. An endpoint that has
// never reported has no series.
func recordFleet(to stats.AsyncMetricsRecorder, s *state.Series, all []string, byEndpoint func(string) []string) {
	oldest, known := 0.0, false
	for _, n := range s.ByAddress {
		r := n.Report
		if r.Told {
			othersInFlightGauge.Record(to, r.Others, byEndpoint(n.Address)...)
		}
		if r.Told || r.AgeSeconds > 0 {
			reportAgeGauge.Record(to, int64(r.AgeSeconds), byEndpoint(n.Address)...)
			oldest, known = max(oldest, r.AgeSeconds), true
		}
	}
	othersInFlightGauge.Record(to, s.Fleet.Others, byEndpoint("")...) // last: see recordGauges
	if known {
		reportAgeGauge.Record(to, int64(oldest), byEndpoint("")...)
	}
	silentEndpointsGauge.Record(to, s.Fleet.Silent, all...)
	fleetImbalanceGauge.Record(to, int64(math.Round(s.Fleet.Imbalance)), all...)
}
