package state

import (
	"slices"
	"sync"
	"weak"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// Tried is the endpoints that the attempts of one RPC have used. The zero value is
// empty; it is safe for concurrent use. It keeps no endpoint and no ledger alive.
type Tried struct {
	mu        sync.Mutex // never held together with a ledger's
	endpoints []weak.Pointer[endpoint]
}

// Add notes the endpoint of a lease; one that was given back is passed over.
func (t *Tried) Add(le Lease) {
	if p := le.endpoint(); p != (weak.Pointer[endpoint]{}) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !slices.Contains(t.endpoints, p) {
			t.endpoints = append(t.endpoints, p)
		}
	}
}

// Remove undoes Add while the lease is live.
func (t *Tried) Remove(le Lease) {
	if p := le.endpoint(); p != (weak.Pointer[endpoint]{}) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.endpoints = slices.DeleteFunc(t.endpoints, func(q weak.Pointer[endpoint]) bool { return p == q })
	}
}

func (le Lease) endpoint() weak.Pointer[endpoint] {
	s := le.entry
	if s == nil {
		return weak.Pointer[endpoint]{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gen != le.gen {
		return weak.Pointer[endpoint]{}
	}
	return weak.Make(s.endpoint)
}

// Empty reports whether no endpoint is noted.
func (t *Tried) Empty() bool {
	return len(t.list()) == 0
}

// Reset forgets the endpoints.
func (t *Tried) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endpoints = nil
}

func (t *Tried) list() []*endpoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ns []*endpoint
	for _, p := range t.endpoints {
		if n := p.Value(); n != nil {
			ns = append(ns, n)
		}
	}
	return ns
}

// AcquireElsewhere is Acquire among the members whose endpoints were not tried; it
// returns false when there is none. It costs O(log n) for each endpoint tried.
func (v *ReadySet) AcquireElsewhere(t *Tried) (Lease, any, bool) {
	tried := t.list()
	v.ledger.mu.Lock()
	defer v.ledger.mu.Unlock()
	return v.elsewhere(tried)
}

func (v *ReadySet) elsewhere(tried []*endpoint) (Lease, any, bool) {
	var excluded []order.Handle
	for _, n := range tried {
		if n.ledger != v.ledger {
			continue // the ready set has moved since
		}
		if m := n.memberOf(v.set); m != nil && m.readySet == v && m.handle != order.None {
			excluded = append(excluded, m.handle)
		}
	}
	var lease Lease
	var m *Member
	v.order.Excluding(excluded, func() {
		first := v.order.First()
		if first == order.None {
			return
		}
		m = v.order.Value(first).member
		if len(v.waits.members) > 0 {
			if due := v.overdue(); due != nil && !slices.Contains(excluded, due.handle) {
				m = due
			}
		}
		v.picks++
		lease = v.ledger.lend(m.endpoint, v.set)
	})
	if m == nil {
		return Lease{}, nil, false
	}
	return lease, m.value, true
}
