package state

import (
	"slices"
	"sync"
	"time"
	"weak"
)

// Tried is the endpoints that the attempts of one RPC have used. The zero value is
// empty; it is safe for concurrent use. It keeps no endpoint and no ledger alive.
type Tried struct {
	mu        sync.Mutex // never held together with a ledger's
	endpoints []weak.Pointer[endpoint]
	failed    time.Time // when the last attempt did, or began
	isRPC     bool      // set before use
}

// StandForRPC lets t stand for an RPC: picks that have it are attempts of one, whatever
// their contexts are. It must be called before t is used.
func (t *Tried) StandForRPC() { t.isRPC = true }

// Add notes the endpoint of a lease. One that was given back is passed over.
func (t *Tried) Add(le Lease) {
	if p := le.endpoint(); p != (weak.Pointer[endpoint]{}) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.failed = time.Now()
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

// endpoint takes the ledger's mutex.
func (le Lease) endpoint() weak.Pointer[endpoint] {
	s := le.entry
	if s == nil {
		return weak.Pointer[endpoint]{}
	}
	mu := s.counters.mu
	mu.Lock()
	defer mu.Unlock()
	if s.gen != le.gen {
		return weak.Pointer[endpoint]{}
	}
	return weak.Make(s.endpoint)
}

// Reset forgets the endpoints.
func (t *Tried) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endpoints = nil
}

// Failed notes that the last attempt has failed. Add does so, too.
func (t *Tried) Failed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = time.Now()
}

// list returns the endpoints, and how long ago the last attempt failed. It takes t's
// mutex.
func (t *Tried) list() (_ []*endpoint, sinceFailure time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ns []*endpoint
	for _, p := range t.endpoints {
		if n := p.Value(); n != nil {
			ns = append(ns, n)
		}
	}
	return ns, time.Since(t.failed)
}
