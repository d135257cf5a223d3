package state

import (
	"slices"
	"sync"
)

// Tried is the nodes that the attempts of one RPC have used. The zero value is
// empty; it is safe for concurrent use. It keeps the nodes' ledger alive.
type Tried struct {
	mu    sync.Mutex // never held together with a ledger's
	nodes []*node
}

// Add notes the node of a lease; one that was given back is passed over.
func (t *Tried) Add(le Lease) {
	s := le.slot
	if s == nil {
		return
	}
	s.mu.Lock()
	n := s.node
	if s.gen != le.gen {
		n = nil
	}
	s.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if n != nil && !slices.Contains(t.nodes, n) {
		t.nodes = append(t.nodes, n)
	}
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
	return slices.Clone(t.nodes)
}

// AcquireElsewhere is Acquire among the members whose nodes were not tried; it
// returns false when there is none. It costs O(log n) for each node tried.
func (v *View) AcquireElsewhere(t *Tried) (Lease, any, bool) {
	tried := t.list()
	l := v.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	type aside struct {
		entry
		weight float64
	}
	var set []aside
	for _, n := range tried {
		if n.ledger != l {
			continue // the view has moved since
		}
		if m := n.memberOf(v.roster); m != nil && m.view == v && m.seat != none {
			set = append(set, aside{v.order.entries[m.seat], v.order.takenWeight(m.seat)})
			v.order.remove(m)
		}
	}
	lease, value, ok := v.acquire()
	for _, a := range set {
		v.order.place(a.member, a.weight, a.value)
	}
	return lease, value, ok
}
