package state

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Totals are what a ledger's endpoints have together: what gauges show.
type Totals struct {
	InFlight      int64 // the sum of ByAddress
	Waiting       int64 // RPCs that wait for room
	Imbalance     float64
	OldestSeconds float64 // age of the oldest lease; 0 without one
	Endpoints     map[EndpointState]int64
	ByAddress     []AddressLoad // by address
}

// AddressLoad is what is in flight on the endpoints that have an address as their
// first one.
type AddressLoad struct {
	Address  string
	InFlight int64
}

// totals are a ledger's last ones.
type totals struct {
	mu   sync.Mutex // held while they are made. It comes before the ledger's
	last *Totals
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
func (l *Ledger) Totals(last *Totals) *Totals {
	t := &l.totals
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || t.last == last || time.Since(t.at) > min(maxTotalsAge, totalsAge*time.Duration(len(t.last.ByAddress))) {
		t.last, t.at = l.newTotals(), time.Now()
	}
	return t.last
}

func (l *Ledger) newTotals() *Totals {
	t := &Totals{Endpoints: map[EndpointState]int64{}}
	var loads []levelLoad
	for _, n := range l.collectTotals(t) {
		t.InFlight += n.inFlight
		t.Endpoints[n.state]++
		t.ByAddress = append(t.ByAddress, AddressLoad{n.address, n.inFlight})
		if n.state == EndpointReady {
			loads = append(loads, levelLoad{n.priority, n.weight, n.inFlight})
		}
	}
	t.Imbalance = imbalance(loads)
	t.ByAddress = byAddress(t.ByAddress)
	return t
}

// byAddress returns the sums of loads by address.
func byAddress(loads []AddressLoad) []AddressLoad {
	slices.SortFunc(loads, func(a, b AddressLoad) int { return cmp.Compare(a.Address, b.Address) })
	sums := loads[:0]
	for _, n := range loads {
		if last := len(sums) - 1; last >= 0 && sums[last].Address == n.Address {
			sums[last].InFlight += n.InFlight
		} else {
			sums = append(sums, n)
		}
	}
	return sums
}

// endpointTotal is an endpoint's part in the totals.
type endpointTotal struct {
	address  string
	inFlight int64
	summary
}

// collectTotals does what needs the ledger's mutex, and takes it.
func (l *Ledger) collectTotals(t *Totals) []endpointTotal {
	endpoints, _ := l.size()
	all := make([]endpointTotal, 0, endpoints)
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Waiting = int64(l.waiting)
	steps := l.inSteps()
	now, oldest := l.clock.read(), time.Duration(0)
	for n := range l.endpoints {
		if !n.summary.known {
			n.summary = n.newSummary()
			steps.did(unitLook * len(n.members))
		}
		all = append(all, endpointTotal{n.address(), n.load.inFlight, n.summary})
		oldest = max(oldest, n.oldest(now))
		steps.did(unitLook)
	}
	t.OldestSeconds = oldest.Seconds()
	return all
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
// It is made when it is asked for, and kept until a member changes.
type summary struct {
	known            bool
	state            EndpointState
	priority, weight uint32
}

func (n *endpoint) newSummary() summary {
	s := summary{known: true, state: EndpointNotReady}
	var best *Member
	for _, m := range n.members {
		switch {
		case m.eligible() != nil:
			if best == nil || cmp.Or(cmp.Compare(m.readySet.priority, best.readySet.priority), cmp.Compare(m.set.name, best.set.name)) < 0 {
				best = m
			}
		case m.readySet != nil:
			s.state = EndpointDraining
		}
	}
	switch {
	case len(n.members) == 0:
		s.state = EndpointDeparted
	case best != nil:
		s.state, s.priority, s.weight = EndpointReady, best.readySet.priority, best.weight
	}
	return s
}
