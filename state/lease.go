package state

import "sync"

// maxFree bounds the slots that a ledger keeps for reuse: enough for the ebb
// and flow of a busy client, some 30 KB at most.
const maxFree = 1024

// Lease is one counted choice of a node. It is a small value; its copies are
// the same lease. The zero Lease is one that was given back.
type Lease struct {
	slot *slot
	gen  uint64
}

// slot is where a live lease is noted. Slots are used again: a lease is live
// while its generation is the slot's. A free slot reaches no ledger, so a
// released lease that is kept pins the slot and the mutex, nothing else.
type slot struct {
	mu   *sync.Mutex // the ledger's
	gen  uint64      // guarded by mu, as is node
	node *node       // nil when free
}

// lend counts one more RPC in flight on n. Caller holds mu.
func (l *Ledger) lend(n *node) Lease {
	l.leases++
	n.setInFlight(n.inFlight + 1)
	var s *slot
	if last := len(l.free) - 1; last >= 0 {
		s = l.free[last] // which stays behind the end: one pointer less to write
		l.free = l.free[:last]
	} else {
		s = &slot{mu: l.mu}
	}
	s.node = n
	return Lease{slot: s, gen: s.gen}
}

// Release gives the lease back: its node has one RPC less in flight. It reports
// whether it did; only the first call on a lease does, later ones change
// nothing. It never blocks for long and calls nobody, so it may run under any
// of the caller's locks.
func (le Lease) Release() bool {
	s := le.slot
	if s == nil {
		return false
	}
	s.mu.Lock()
	live := s.gen == le.gen
	if live {
		s.settle()
	}
	s.mu.Unlock()
	return live
}

// settle ends the slot's lease. Caller holds mu.
func (s *slot) settle() {
	n := s.node
	l := n.ledger
	s.node = nil
	s.gen++
	if len(l.free) < maxFree {
		l.free = append(l.free, s)
	}
	l.leases--
	n.setInFlight(n.inFlight - 1)
	l.retire(n)
}
