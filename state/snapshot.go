package state

import (
	"cmp"
	"slices"
	"time"
)

// Snapshot is a ledger at one moment, for people, tests and tools.
type Snapshot struct {
	ResourceKey  string                `json:"resourceKey"`  // "" for a private ledger
	InFlight     int64                 `json:"inFlight"`     // live leases: attempts that run, and grants
	Granted      int64                 `json:"granted"`      // room that RPCs which wait were given and have not taken up
	Waiting      int64                 `json:"waiting"`      // RPCs that wait for room
	Imbalance    float64               `json:"imbalance"`    // most minus fewest in flight over relative weight
	Endpoints    []EndpointSnapshot    `json:"endpoints"`    // by first address, then id
	EndpointSets []EndpointSetSnapshot `json:"endpointSets"` // by name
}

// EndpointSnapshot is one endpoint of a ledger.
type EndpointSnapshot struct {
	ID            string           `json:"id,omitempty"`
	Addresses     []string         `json:"addresses"` // sorted
	State         EndpointState    `json:"state"`
	InFlight      int64            `json:"inFlight"`
	Granted       int64            `json:"granted"`       // of those, what RPCs that wait have not taken up
	Picks         uint64           `json:"picks"`         // leases since the ledger knows the endpoint
	Penalty       int64            `json:"penalty"`       // units that fresh failures have left
	OldestSeconds float64          `json:"oldestSeconds"` // age of the oldest lease; 0 without one
	Members       []MemberSnapshot `json:"members"`       // by endpoint set; none once departed
}

// MemberSnapshot is an endpoint as one endpoint set lists it.
type MemberSnapshot struct {
	EndpointSet     string  `json:"endpointSet"`
	Ready           bool    `json:"ready"`              // it is in a ready set, and what follows is the ready set's
	Priority        uint32  `json:"priority"`           // 0 is the highest
	Weight          uint32  `json:"weight"`             // 0 while ready: draining
	Score           float64 `json:"score"`              // (in_flight + penalty + 1) / (weight × share); 0 unless it may be chosen
	Draining        bool    `json:"draining,omitempty"` // ready, and not chosen
	MaxInFlight     int64   `json:"maxInFlight"`        // 0: no cap
	Full            bool    `json:"full,omitempty"`     // at its cap, penalties included
	SlowStartFactor float64 `json:"slowStartFactor"`    // of its weight: below 1 while it starts slowly
}

// EndpointSetSnapshot is one balancer's part in a ledger.
type EndpointSetSnapshot struct {
	Name    string `json:"name"`
	Waiting int64  `json:"waiting"` // RPCs that wait for room
	Granted int64  `json:"granted"` // RPCs that were given it and have not taken it up
	Counters
}

// Snapshot returns the ledger as it is now. The slices are the caller's.
func (l *Ledger) Snapshot() Snapshot {
	s := l.collect()
	slices.SortFunc(s.Endpoints, func(a, b EndpointSnapshot) int {
		return cmp.Or(slices.Compare(a.Addresses, b.Addresses), cmp.Compare(a.ID, b.ID), cmp.Compare(a.InFlight, b.InFlight))
	})
	slices.SortFunc(s.EndpointSets, func(a, b EndpointSetSnapshot) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Picks, a.Picks))
	})
	s.Imbalance = imbalance(s.Endpoints)
	return s
}

// collect does what needs the ledger's mutex, and takes it.
func (l *Ledger) collect() Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Snapshot{
		ResourceKey: l.key, InFlight: l.leases, Waiting: int64(l.waiting),
		Endpoints: make([]EndpointSnapshot, 0, len(l.endpoints)), EndpointSets: make([]EndpointSetSnapshot, 0, len(l.sets)),
	}
	grants := map[*endpoint]int64{}
	for r := range l.sets {
		s.EndpointSets = append(s.EndpointSets, r.snapshot())
		s.Granted += int64(len(r.queue.granted))
		for w := range r.queue.granted {
			grants[w.member.endpoint]++
		}
	}
	now := l.clock.read()
	for n := range l.endpoints {
		s.Endpoints = append(s.Endpoints, n.snapshot(now, grants[n]))
	}
	return s
}

func (n *endpoint) snapshot(now time.Duration, granted int64) EndpointSnapshot {
	s := EndpointSnapshot{
		ID:        n.id,
		Addresses: slices.Clone(n.addrs),
		InFlight:  n.load.inFlight,
		Granted:   granted,
		Picks:     n.picks,
		Penalty:   n.load.penalty,
		Members:   make([]MemberSnapshot, 0, len(n.members)),
	}
	if oldest := n.leases.oldest; oldest != nil {
		s.OldestSeconds = (now - oldest.start).Seconds()
	}
	for _, m := range n.members {
		s.Members = append(s.Members, m.snapshot())
	}
	slices.SortFunc(s.Members, func(a, b MemberSnapshot) int {
		return cmp.Or(cmp.Compare(a.EndpointSet, b.EndpointSet), cmp.Compare(a.Priority, b.Priority))
	})
	s.State = s.state()
	return s
}

func (m *Member) snapshot() MemberSnapshot {
	s := MemberSnapshot{EndpointSet: m.set.name, SlowStartFactor: m.slowStart.factor}
	if m.limit != noLimit {
		s.MaxInFlight = m.limit
	}
	if m.readySet == nil {
		return s
	}
	s.Ready, s.Priority, s.Weight = true, m.readySet.priority, m.weight
	s.Draining, s.Full = m.weight == 0, m.full
	if m.order != nil {
		s.Score = float64(m.endpoint.load.sum()+1) / m.order.ClassWeight(m.handle)
	}
	return s
}

func (r *EndpointSet) snapshot() EndpointSetSnapshot {
	return EndpointSetSnapshot{Name: r.name, Waiting: int64(r.queue.waiting()), Granted: int64(len(r.queue.granted)), Counters: r.countersLocked()}
}

// Snapshots returns the snapshots of all ledgers in use, by resource key.
func Snapshots() []Snapshot {
	var all []Snapshot
	for _, l := range Ledgers() {
		all = append(all, l.Snapshot())
	}
	slices.SortFunc(all, func(a, b Snapshot) int {
		return cmp.Or(cmp.Compare(a.ResourceKey, b.ResourceKey), cmp.Compare(b.InFlight, a.InFlight))
	})
	return all
}
