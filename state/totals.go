package state

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Totals are what endpoints have together: what gauges show.
type Totals struct {
	InFlight      int64 // the sum of ByAddress
	Waiting       int64 // RPCs that wait for room
	Imbalance     float64
	Fleet         FleetSnapshot
	OldestSeconds float64 // age of the oldest lease; 0 without one
	Endpoints     map[EndpointState]int64
	ByAddress     []AddressLoad // by address
}

// AddressLoad is what is in flight on the endpoints that have an address as their
// first one, and what they may be given.
type AddressLoad struct {
	Address         string
	InFlight        int64
	MaxInFlight     int64          // the lowest of its endpoint sets' caps; 0 without one. Of several endpoints, the sum, if each has one
	EffectiveWeight float64        // as it is chosen by first; 0 unless it may be. Likewise
	Report          ReportSnapshot // of several that report, their others and the greater age
}

// LedgerTotals are the totals of a ledger's endpoints, with what [SeriesOf] needs.
type LedgerTotals struct {
	Totals
	key       string
	interval  time.Duration // of reports; 0: they are not used
	endpoints []endpointTotal
	labels    map[labels]int64 // of its endpoint sets and of who has left endpoints: RPCs that wait
}

// totals are a ledger's last ones.
type totals struct {
	mu   sync.Mutex // held while they are made. It comes before the ledger's
	last *LedgerTotals
	at   time.Time
}

// The channels of a process that share a ledger are asked for their gauges one after
// another. They are given the same totals for so long, which is some hundred times what
// it takes to make them: with few endpoints each has its own, with 10,000 all of them
// share some.
const (
	totalsAge    = 20 * time.Microsecond // for each endpoint
	maxTotalsAge = time.Second
)

// Totals returns the ledger's totals. They may be those that another caller was just
// given, but not last, which is what this one has had. Nobody may change them.
//
// They are made in steps: no pick waits for all of it. Their figures are of slightly
// different moments, and add up.
func (l *Ledger) Totals(last *LedgerTotals) *LedgerTotals {
	t := &l.totals
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || t.last == last || time.Since(t.at) > min(maxTotalsAge, totalsAge*time.Duration(len(t.last.ByAddress))) {
		t.last, t.at = l.newTotals(), time.Now()
	}
	return t.last
}

func (l *Ledger) newTotals() *LedgerTotals {
	t := &LedgerTotals{key: l.key, labels: map[labels]int64{}}
	l.collectTotals(t)
	t.Totals = sum(t.endpoints)
	t.Fleet.IntervalSeconds = t.interval.Seconds()
	for _, n := range t.labels {
		t.Waiting += n
	}
	return t
}

// sum returns what the endpoints have together, RPCs that wait apart.
func sum(endpoints []endpointTotal) Totals {
	t := Totals{Endpoints: map[EndpointState]int64{}}
	var loads []levelLoad
	oldest := time.Duration(0)
	for _, n := range endpoints {
		t.InFlight += n.inFlight
		t.Endpoints[n.state]++
		t.Fleet.add(n.report)
		t.ByAddress = append(t.ByAddress, AddressLoad{n.address, n.inFlight, n.maxInFlight, n.effectiveWeight, n.report})
		oldest = max(oldest, n.oldest)
		if n.state == EndpointReady {
			loads = append(loads, levelLoad{
				priority: n.priority, weight: n.weight, inFlight: n.inFlight, units: n.units, penalty: n.penalty,
				heldBack: n.heldBack, report: n.report,
			})
		}
	}
	t.OldestSeconds = oldest.Seconds()
	t.Imbalance, t.Fleet.Imbalance = imbalance(loads), fleetImbalance(loads)
	t.ByAddress = byAddress(t.ByAddress)
	return t
}

// byAddress returns the sums of loads by address.
func byAddress(loads []AddressLoad) []AddressLoad {
	slices.SortFunc(loads, func(a, b AddressLoad) int { return cmp.Compare(a.Address, b.Address) })
	sums := loads[:0]
	for _, n := range loads {
		if last := len(sums) - 1; last >= 0 && sums[last].Address == n.Address {
			sums[last].add(n)
		} else {
			sums = append(sums, n)
		}
	}
	return sums
}

// add adds what another endpoint with the address has.
func (a *AddressLoad) add(b AddressLoad) {
	a.InFlight += b.InFlight
	a.EffectiveWeight += b.EffectiveWeight
	if a.MaxInFlight > 0 && b.MaxInFlight > 0 {
		a.MaxInFlight += b.MaxInFlight
	} else {
		a.MaxInFlight = 0
	}
	sum := better(a.Report, b.Report)
	if a.Report.Told && b.Report.Told {
		sum.Others += a.Report.Others
		sum.OthersRate += a.Report.OthersRate
		sum.AgeSeconds = max(sum.AgeSeconds, a.Report.AgeSeconds)
	}
	a.Report = sum
}

// endpointTotal is an endpoint's part in the totals.
type endpointTotal struct {
	address  string
	inFlight int64
	units    int64 // that those cost
	penalty  int64
	oldest   time.Duration // age of its oldest lease
	report   ReportSnapshot
	summary
	parts []summary // by labels; none where the summary is that of all who have to do with it
}

// collectTotals does what needs the ledger's mutex, and takes it.
func (l *Ledger) collectTotals(t *LedgerTotals) {
	endpoints, _ := l.size()
	t.endpoints = make([]endpointTotal, 0, endpoints)
	l.mu.Lock()
	defer l.mu.Unlock()
	steps := l.inSteps()
	for r := range l.sets {
		t.labels[r.labels] += int64(r.queue.waiting())
		steps.did(unitLook)
	}
	t.interval = l.reportIntervalLocked()
	now := l.clock.read()
	known := func(is labels) { t.labels[is] += 0 } // endpoint sets may come meanwhile
	var last labels
	for n := range l.endpoints {
		units := unitLook // no pause before all is known of n: its members and leases may go in one
		if !n.summary.known {
			n.summary, n.parts = n.newSummary(), n.newParts()
			units += unitLook * len(n.members) * max(1, len(n.parts))
		}
		e := endpointTotal{address: n.address(), inFlight: n.load.inFlight, units: n.load.units, penalty: n.load.penalty, oldest: n.oldest(now), summary: n.summary, parts: n.parts}
		if t.interval > 0 {
			e.report = n.reportLocked()
			units += unitLook * len(n.members)
		}
		if len(n.left) > 0 {
			n.addDeparted(&e)
			units += unitLook * len(n.left) * (1 + len(n.members))
		}
		for _, part := range e.parts {
			known(part.labels)
		}
		if e.parts == nil && e.labels != last {
			last = e.labels
			known(last)
		}
		t.endpoints = append(t.endpoints, e)
		steps.did(units)
	}
}

// address returns the first of n's addresses.
func (n *endpoint) address() string {
	if len(n.addrs) == 0 {
		return ""
	}
	return n.addrs[0]
}
