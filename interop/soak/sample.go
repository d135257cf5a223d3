package main

import (
	"fmt"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// sample is what the ledgers said at a moment, and what was open just before and had been begun just after.
type sample struct {
	counts    counts
	before    mark
	begun     map[string]int
	at        time.Time // after the snapshots
	snapshots []leastconnbalancer.Snapshot
}

// tooHigh says where more is counted than attempts can have been open. One that has no connection yet may be picked for
// again after a channel has moved, and ledgers are read one after another: it may show in each of a key. Room that an RPC
// was given while it waited is given back by another goroutine when the RPC ends.
func (s sample) tooHigh() error {
	var errs []error
	ledgers, given := map[string]int{}, map[string]int{}
	for _, l := range s.snapshots {
		ledgers[keyOf(l)]++
		given[keyOf(l)] += int(l.Granted + l.Reserved)
	}
	for p, got := range s.counts {
		placed, unplaced := len(s.before.connected[p]), s.before.unconnected[p.key]
		begun := s.begun[p.key] - s.before.begun[p.key]
		if most := placed + (unplaced+begun)*ledgers[p.key] + given[p.key]; got > most {
			errs = append(errs, fmt.Errorf("%v has %d in flight, at most %d can be: %d were open there, %d on their way, %d begun since, %d given room",
				p, got, most, placed, unplaced, begun, given[p.key]))
		}
	}
	return sorted(errs)
}

// tooLow says where less is counted than attempts were open all the time. open tells how many of them still were when
// ends until then had been told.
func (s sample) tooLow(open func([]*attempt, time.Time) int) error {
	var errs []error
	for p, placed := range s.before.connected {
		if got, least := s.counts[p], open(placed, s.at.Add(endDelay)); got < least {
			errs = append(errs, fmt.Errorf("%v has %d in flight, but %d that were open there before still were %v later",
				p, got, least, endDelay))
		}
	}
	return sorted(errs)
}
