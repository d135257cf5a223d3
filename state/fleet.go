package state

import (
	"math"
	"sort"
	"time"
)

// FleetSnapshot is what servers say of a ledger's endpoints, where reports are used: see
// [EndpointSet.SetReports].
type FleetSnapshot struct {
	IntervalSeconds float64 `json:"intervalSeconds"` // at which servers are asked to report, the shortest of the endpoint sets'; 0: reports are not used
	Told            int64   `json:"told"`            // endpoints whose last report counts
	Silent          int64   `json:"silent"`          // endpoints that have not reported for three intervals, or not the truth
	Others          int64   `json:"others"`          // RPCs in flight that are no leases of this ledger, at the last reports that count
	Imbalance       float64 `json:"imbalance"`       // RPCs: as that of the ledger, with others counted, of the endpoints whose report counts
}

// add counts what an endpoint's server says.
func (f *FleetSnapshot) add(r ReportSnapshot) {
	switch {
	case r.Told:
		f.Told++
		f.Others += r.Others
	case r.Silent:
		f.Silent++
	}
}

// reportIntervalLocked returns the shortest interval of the ledger's endpoint sets, 0 without
// one. The caller has the mutex.
func (l *Ledger) reportIntervalLocked() time.Duration {
	shortest := time.Duration(math.MaxInt64)
	for r := range l.sets {
		if r.reports > 0 {
			shortest = min(shortest, r.reports)
		}
	}
	if shortest == math.MaxInt64 {
		return 0
	}
	return shortest
}

// Report returns what the endpoint's server says. Endpoint sets may have heard it at
// different intervals: it counts where it counts for one of them.
func (n EndpointSnapshot) Report() (best ReportSnapshot) {
	for _, m := range n.Members {
		if best = better(best, m.Report); best.Told {
			break
		}
	}
	return best
}

// reportLocked is EndpointSnapshot's Report. The caller has the mutex.
func (n *endpoint) reportLocked() (best ReportSnapshot) {
	for _, m := range n.members {
		if best = better(best, m.reportSnapshot()); best.Told {
			break
		}
	}
	return best
}

// better returns the one that counts, else the one that is silent.
func better(a, b ReportSnapshot) ReportSnapshot {
	if b.Told || b.Silent && !a.Told {
		return b
	}
	return a
}

// shareOthers tells others' RPCs on a server once where several ledgers have it: one's are among
// the others of each other one. Of those that have told, it believes the youngest report.
func (r *row) shareOthers() {
	if len(r.ledgers) < 2 {
		return
	}
	byAddress := map[string][]int{}
	for i, n := range r.endpoints {
		byAddress[n.address] = append(byAddress[n.address], i)
	}
	ledger := func(i int) int { return sort.SearchInts(r.ledgers, i+1) }
	for _, at := range byAddress {
		youngest := -1
		for _, i := range at {
			if n := &r.endpoints[i]; n.report.Told && (youngest < 0 || n.report.AgeSeconds < r.endpoints[youngest].report.AgeSeconds) {
				youngest = i
			}
		}
		for _, i := range at {
			if youngest < 0 || ledger(i) == ledger(youngest) {
				continue
			}
			own := &r.endpoints[youngest].report
			own.Others = max(0, own.Others-r.endpoints[i].inFlight)
			r.endpoints[i].report.Others, r.endpoints[i].report.OthersRate = 0, 0
		}
	}
}
