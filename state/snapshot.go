package state

import (
	"cmp"
	"slices"
)

// Snapshot is a ledger at one moment, for people, tests and tools.
type Snapshot struct {
	ResourceKey string         `json:"resourceKey"` // "" for a private ledger
	InFlight    int64          `json:"inFlight"`    // live leases
	Nodes       []NodeSnapshot `json:"nodes"`       // by first address, then id
}

// NodeSnapshot is one node of a ledger.
type NodeSnapshot struct {
	ID        string           `json:"id,omitempty"`
	Addresses []string         `json:"addresses"` // sorted
	InFlight  int64            `json:"inFlight"`
	Members   []MemberSnapshot `json:"members"` // by roster; none once departed
}

// MemberSnapshot is a node as one roster lists it.
type MemberSnapshot struct {
	Roster   string  `json:"roster"`
	Ready    bool    `json:"ready"`              // it is in a view, and what follows is the view's
	Priority uint32  `json:"priority"`           // 0 is the highest
	Weight   uint32  `json:"weight"`             // 0 while ready: draining
	Score    float64 `json:"score"`              // (in_flight + 1) / weight; 0 unless it may be chosen
	Draining bool    `json:"draining,omitempty"` // ready, and not chosen
}

// Snapshot returns the ledger as it is now.
func (l *Ledger) Snapshot() Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Snapshot{ResourceKey: l.key, InFlight: l.leases, Nodes: make([]NodeSnapshot, 0, len(l.nodes))}
	for n := range l.nodes {
		s.Nodes = append(s.Nodes, n.snapshot())
	}
	slices.SortFunc(s.Nodes, func(a, b NodeSnapshot) int {
		return cmp.Or(slices.Compare(a.Addresses, b.Addresses), cmp.Compare(a.ID, b.ID), cmp.Compare(a.InFlight, b.InFlight))
	})
	return s
}

func (n *node) snapshot() NodeSnapshot {
	s := NodeSnapshot{
		ID:        n.id,
		Addresses: slices.Clone(n.addrs),
		InFlight:  n.inFlight,
		Members:   make([]MemberSnapshot, 0, len(n.members)),
	}
	for _, m := range n.members {
		s.Members = append(s.Members, m.snapshot())
	}
	slices.SortFunc(s.Members, func(a, b MemberSnapshot) int {
		return cmp.Or(cmp.Compare(a.Roster, b.Roster), cmp.Compare(a.Priority, b.Priority))
	})
	return s
}

func (m *Member) snapshot() MemberSnapshot {
	s := MemberSnapshot{Roster: m.roster.name}
	if m.view == nil {
		return s
	}
	s.Ready, s.Priority, s.Weight = true, m.view.priority, m.weight
	s.Draining = m.seat == none
	if !s.Draining {
		o := &m.view.order
		b := &o.buckets[o.seats[m.seat].bucket]
		s.Score = float64(b.load+1) / o.classes[b.class].weight
	}
	return s
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
