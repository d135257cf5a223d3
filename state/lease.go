package state

import (
	"sync"
	"time"
)

// maxFree bounds the slots that a ledger keeps for reuse: enough for the ebb
// and flow of a busy client, some 50 KB at most.
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
	mu   *sync.Mutex // the ledger's; it guards what follows
	gen  uint64
	node *node // nil when free

	account *account      // of the last lease's roster
	start   time.Duration // by the ledger's clock
	index   int           // in the ledger's slots
}

// lend counts one more RPC of a roster in flight on n. Caller holds mu.
func (l *Ledger) lend(n *node, r *Roster) Lease {
	l.leases++
	if !l.clock.used {
		l.wind()
	}
	n.picks++
	n.setInFlight(n.inFlight + 1)
	var s *slot
	if last := len(l.free) - 1; last >= 0 {
		s = l.free[last] // which stays behind the end: one pointer less to write
		l.free = l.free[:last]
	} else {
		s = &slot{mu: l.mu, index: len(l.slots)}
		l.slots = append(l.slots, s)
	}
	s.node, s.start = n, l.clock.now
	if s.account != r.account {
		s.account = r.account
	}
	return Lease{slot: s, gen: s.gen}
}

// Release gives the lease back: its node has one RPC less in flight. It reports
// whether it did; only the first call of Release or Fail on a lease does, later
// ones change nothing. It never blocks for long and calls nobody, so it may run
// under any of the caller's locks.
func (le Lease) Release() bool { return le.end(false) }

// Fail is Release for an attempt that failed. When it did so within the
// FailurePenalty of its roster's guards, its unit stays on the node as a penalty
// until that time after its start: a node that fails at once is not the
// emptiest. An attempt that lived longer leaves none.
func (le Lease) Fail() bool { return le.end(true) }

func (le Lease) end(failed bool) bool {
	s := le.slot
	if s == nil {
		return false
	}
	s.mu.Lock()
	live := s.gen == le.gen
	if live {
		s.settle(failed)
	} else {
		s.account.DoubleReleases++
	}
	s.mu.Unlock()
	return live
}

// settle ends the slot's lease. Caller holds mu.
func (s *slot) settle(failed bool) {
	n := s.node
	l := n.ledger
	s.node = nil
	s.gen++
	if len(l.free) < maxFree {
		l.free = append(l.free, s)
	} else {
		l.drop(s)
	}
	l.leases--
	n.setInFlight(n.inFlight - 1)
	if failed && l.punish(n, s.start+s.account.penalty) {
		s.account.Penalties++
	}
	if l.waiting > 0 {
		l.offer(n)
	}
	l.retire(n)
}

// drop takes a slot off the ledger.
func (l *Ledger) drop(s *slot) {
	last := len(l.slots) - 1
	l.slots[s.index] = l.slots[last]
	l.slots[s.index].index = s.index
	l.slots[last] = nil
	l.slots = l.slots[:last]
}
