package state

import (
	"sync"
	"time"
)

// maxFree bounds the lease entries that an endpoint set keeps for reuse: enough for
// the ebb and flow of a busy client, some 64 KB at most.
const maxFree = 1024

// Lease is one counted choice of an endpoint. It is a small value; its copies are
// the same lease. The zero Lease is one that was given back.
type Lease struct {
	entry *leaseEntry
	gen   uint64
}

// leaseEntry is where a ledger notes a live lease. Entries are used again, by the
// endpoint set that they were made for: a lease is live while its generation is the
// entry's. A free entry reaches no ledger, so a released lease that is kept pins the
// entry, the mutex and the counters, nothing else.
type leaseEntry struct {
	mu       *sync.Mutex // the ledger's; it guards what follows
	gen      uint64
	endpoint *endpoint // nil when free

	prev, next *leaseEntry // the endpoint's next older and next younger lease

	counters *counters     // of its endpoint set
	start    time.Duration // by the ledger's clock
	startup  *startup      // that has it in flight; nil when it began at another time
}

// leaseList is an endpoint's live leases. Since the clock never goes back, their
// start times rise from the oldest to the newest.
type leaseList struct{ oldest, newest *leaseEntry }

func (ls *leaseList) push(s *leaseEntry) {
	s.prev = ls.newest
	if ls.newest == nil {
		ls.oldest = s
	} else {
		ls.newest.next = s
	}
	ls.newest = s
}

func (ls *leaseList) remove(s *leaseEntry) {
	if s.prev == nil {
		ls.oldest = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		ls.newest = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
}

// newLease counts one more RPC of an endpoint set in flight on n.
func (l *Ledger) newLease(n *endpoint, r *EndpointSet) Lease {
	l.leases++
	if !l.clock.used {
		l.startClock()
	}
	n.picks++
	n.setLoad(load{n.load.inFlight + 1, n.load.penalty})
	var s *leaseEntry
	c := r.counters
	if last := len(c.free) - 1; last >= 0 {
		s = c.free[last] // which stays behind the end: one pointer less to write
		c.free = c.free[:last]
	} else {
		s = &leaseEntry{mu: l.mu, counters: c}
	}
	s.endpoint, s.start = n, l.clock.now
	if r.startup != nil {
		s.startup = r.startup
		s.startup.inFlight++
	}
	n.leases.push(s)
	return Lease{entry: s, gen: s.gen}
}

// Release gives the lease back: its endpoint has one RPC less in flight. It reports
// whether it did. Only the first call of Release or Fail on a lease does; later
// ones change nothing. It never blocks for long and calls nobody, so it may run
// under any of the caller's locks.
func (le Lease) Release() bool { return le.end(false) }

// Fail is Release for an attempt that failed. When it did so within the
// FailurePenalty of its endpoint set's guards, its unit stays on the endpoint as a
// penalty until that time after its start: an endpoint that fails at once is not
// the emptiest. An attempt that lived longer leaves none.
func (le Lease) Fail() bool { return le.end(true) }

// end takes the ledger's mutex.
func (le Lease) end(failed bool) bool {
	s := le.entry
	if s == nil {
		return false
	}
	s.mu.Lock()
	live := s.gen == le.gen
	if live {
		s.end(failed)
	} else {
		s.counters.DoubleReleases++
	}
	s.mu.Unlock()
	return live
}

// end ends the entry's lease and gives the room to RPCs that wait.
func (s *leaseEntry) end(failed bool) {
	n := s.endpoint
	l := n.ledger
	n.leases.remove(s)
	s.endpoint = nil
	s.gen++
	if s.startup != nil {
		s.startup.inFlight--
		s.startup = nil
	}
	if c := s.counters; len(c.free) < maxFree && !c.closed {
		c.free = append(c.free, s)
	}
	l.leases--
	n.setLoad(load{n.load.inFlight - 1, n.load.penalty})
	if failed && l.addPenalty(n, s.start+s.counters.penalty) {
		s.counters.Penalties++
	}
	l.grantOn(n)
	l.retire(n)
}
