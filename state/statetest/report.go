package statetest

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Servers of scripts have nobody else's RPCs in flight: whatever they report, and however
// seldom, each choice must be the one that the model makes without reports.

// useReports has an endpoint set use reports, or not.
func (s *script) useReports(id int) error {
	interval := of(s, []time.Duration{0, 100 * time.Millisecond, 100 * time.Millisecond, time.Second, time.Hour})
	s.sets[id].endpointSet.SetReports(interval)
	s.model.sets[id].reports = interval
	return nil
}

// report has some servers of an endpoint set report: the truth, less than that or
// nothing that makes sense.
func (s *script) report(id int) error {
	r := s.sets[id]
	addrs := slices.Sorted(maps.Keys(r.members))
	for range 1 + s.next(4) {
		if len(addrs) == 0 {
			break
		}
		addr := of(s, addrs)
		own := len(s.model.endpoints[addr].leases)
		inFlight := int64(of(s, []int{own, own, own, own / 2, 0, -1}))
		r.members[addr].Report(inFlight, of(s, []float64{0, 1, 250, math.NaN(), -1, math.Inf(1), 1e300}))
	}
	return nil
}
