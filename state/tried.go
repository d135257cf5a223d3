package state

import (
	"slices"
	"sync"
	"weak"
)

// Tried is the nodes that the attempts of one RPC have used. The zero value is
// empty; it is safe for concurrent use. It keeps no node and no ledger alive.
type Tried struct {
	mu    sync.Mutex // never held together with a ledger's
	nodes []weak.Pointer[node]
}

// Add notes the node of a lease; one that was given back is passed over.
func (t *Tried) Add(le Lease) {
	if p := le.node(); p != (weak.Pointer[node]{}) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !slices.Contains(t.nodes, p) {
			t.nodes = append(t.nodes, p)
		}
	}
}

// Remove undoes Add while the lease is live.
func (t *Tried) Remove(le Lease) {
	if p := le.node(); p != (weak.Pointer[node]{}) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.nodes = slices.DeleteFunc(t.nodes, func(q weak.Pointer[node]) bool { return p == q })
	}
}

func (le Lease) node() weak.Pointer[node] {
	s := le.slot
	if s == nil {
		return weak.Pointer[node]{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gen != le.gen {
		return weak.Pointer[node]{}
	}
	return weak.Make(s.node)
}

// Empty reports whether no node is noted.
func (t *Tried) Empty() bool {
	return len(t.list()) == 0
}

// Reset forgets the nodes.
func (t *Tried) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nodes = nil
}

func (t *Tried) list() []*node {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ns []*node
	for _, p := range t.nodes {
		if n := p.Value(); n != nil {
			ns = append(ns, n)
		}
	}
	return ns
}

// AcquireElsewhere is Acquire among the members whose nodes were not tried; it
// returns false when there is none. It costs O(log n) for each node tried.
func (v *View) AcquireElsewhere(t *Tried) (Lease, any, bool) {
	tried := t.list()
	v.ledger.mu.Lock()
	defer v.ledger.mu.Unlock()
	return v.elsewhere(tried)
}

func (v *View) elsewhere(tried []*node) (Lease, any, bool) {
	type aside struct {
		entry
		weight float64
	}
	var set []aside
	for _, n := range tried {
		if n.ledger != v.ledger {
			continue // the view has moved since
		}
		if m := n.memberOf(v.roster); m != nil && m.view == v && m.seat != none {
			set = append(set, aside{v.order.seats[m.seat].entry, v.order.takenWeight(m.seat)})
			v.order.remove(m)
		}
	}
	var lease Lease
	var value any
	e := v.order.first()
	if e != nil {
		if len(v.waits.members) > 0 {
			if m := v.overdue(); m != nil && m.seat != none {
				e = &v.order.seats[m.seat].entry
			}
		}
		value = e.value
		v.picks++
		lease = v.ledger.lend(e.node, v.roster)
	}
	for _, a := range set {
		v.order.replace(a.member, a.weight, a.value)
	}
	return lease, value, e != nil
}
