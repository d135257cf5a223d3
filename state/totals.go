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
			loads = append(loads, levelLoad{n.priority, n.weight, n.inFlight, n.units, n.penalty, n.heldBack, n.report, 0})
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
		if !n.summary.known {
			n.summary, n.parts = n.newSummary(), n.newParts()
			steps.did(unitLook * len(n.members) * max(1, len(n.parts)))
		}
		e := endpointTotal{address: n.address(), inFlight: n.load.inFlight, units: n.load.units, penalty: n.load.penalty, oldest: n.oldest(now), summary: n.summary, parts: n.parts}
		if t.interval > 0 {
			e.report = n.reportLocked()
			steps.did(unitLook * len(n.members))
		}
		if len(n.left) > 0 {
			n.addDeparted(&e)
			steps.did(unitLook * len(n.left) * (1 + len(n.members)))
		}
		for _, part := range e.parts {
			known(part.labels)
		}
		if e.parts == nil && e.labels != last {
			last = e.labels
			known(last)
		}
		t.endpoints = append(t.endpoints, e)
		steps.did(unitLook)
	}
}

// address returns the first of n's addresses.
func (n *endpoint) address() string {
	if len(n.addrs) == 0 {
		return ""
	}
	return n.addrs[0]
}

// summary is what an endpoint's members say of it: its state and, where it may be
// chosen, the priority level and the weight of its first member of the highest level.
// It is made when it is asked for, and kept until a member changes, as by being full or
// having room again.
type summary struct {
	known            bool
	labels           labels // of all of them, or none where they differ
	state            EndpointState
	priority, weight uint32
	effectiveWeight  float64
	heldBack         bool  // in the level: a member is full or starts slowly
	maxInFlight      int64 // the lowest of their caps; 0 without one
}

// newSummary returns the summary of all members.
func (n *endpoint) newSummary() summary {
	s := n.summarize(labels{})
	if len(n.members) > 0 {
		s.labels = n.members[0].set.labels
	}
	for _, m := range n.members {
		if m.set.labels != s.labels {
			s.labels = labels{}
		}
	}
	return s
}

// newParts returns the summaries by labels, if there are several.
func (n *endpoint) newParts() (parts []summary) {
	for _, m := range n.members {
		is := m.set.labels
		if is != n.members[0].set.labels && parts == nil {
			parts = append(parts, n.summarize(n.members[0].set.labels))
		}
		if parts != nil && !slices.ContainsFunc(parts, func(s summary) bool { return s.labels == is }) {
			parts = append(parts, n.summarize(is))
		}
	}
	return parts
}

// summarize returns the summary of the members whose endpoint sets have the labels;
// without labels, of all.
func (n *endpoint) summarize(of labels) summary {
	s := summary{known: true, labels: of, state: EndpointDeparted}
	var best *Member
	for _, m := range n.members {
		if of != (labels{}) && m.set.labels != of {
			continue
		}
		s.lowerCap(m.limit)
		switch {
		case m.eligible() != nil:
			if best == nil || cmp.Or(cmp.Compare(m.readySet.priority, best.readySet.priority), cmp.Compare(m.set.name, best.set.name)) < 0 {
				best = m
			}
		case m.readySet != nil:
			s.state = EndpointDraining
		case s.state == EndpointDeparted:
			s.state = EndpointNotReady
		}
	}
	if best == nil {
		return s
	}
	s.state, s.priority = EndpointReady, best.readySet.priority
	s.weight, s.effectiveWeight = best.weight, best.effectiveWeight()
	for _, m := range n.members {
		if v := m.eligible(); v != nil && v.priority == s.priority && (of == labels{} || m.set.labels == of) {
			s.heldBack = s.heldBack || m.full || m.ramping()
		}
	}
	return s
}

// lowerCap takes up a member's cap, if it is the lowest so far.
func (s *summary) lowerCap(limit int64) {
	if limit != noLimit && (s.maxInFlight == 0 || limit < s.maxInFlight) {
		s.maxInFlight = limit
	}
}
