package leastconnbalancer

import (
	"math"

	"google.golang.org/grpc/experimental/stats"

	"github.com/leastconn/grpc-leastconn/state"
)

// recordGauges records what a ledger's snapshot shows.
func recordGauges(to stats.AsyncMetricsRecorder, s state.Snapshot, target, locality string) {
	byState := map[state.EndpointState]int64{}
	byAddress := map[string]int64{}
	oldest := 0.0
	for _, n := range s.Endpoints {
		byState[n.State]++
		byAddress[n.Address()] += n.InFlight
		oldest = max(oldest, n.OldestSeconds)
	}
	for address, n := range byAddress {
		inFlightGauge.Record(to, n, target, locality, address)
	}
	// Last: where the endpoint label is off, all of these are one series, and the
	// last one is its value.
	inFlightGauge.Record(to, s.InFlight, target, locality, "")
	for _, is := range state.EndpointStates {
		endpointsGauge.Record(to, byState[is], target, string(is), locality)
	}
	queueLengthGauge.Record(to, s.Waiting, target, locality)
	imbalanceGauge.Record(to, int64(math.Round(s.Imbalance)), target, locality)
	oldestGauge.Record(to, int64(oldest), target, locality)
}
