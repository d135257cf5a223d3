package state

import "time"

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
// entry and the counters, nothing else.
type leaseEntry struct {
	gen        uint64
	endpoint   *endpoint   // nil when free
	connection *Connection // that the RPC has; nil while it waits for one, and when free

	prev, next *leaseEntry // the endpoint's next older and next younger lease

	counters *counters     // of its endpoint set; they have the ledger's mutex, which guards the rest
	start    time.Duration // by the ledger's clock
	rare     *rareLease    // nil for most: so an entry fills one line of memory
}

// rareLease is what few leases have.
type rareLease struct {
	startup *startup   // that has it in flight; nil when it began at another time
	mark    *Mark      // of the session that its RPC is of; nil without one
	cost    *leaseCost // what it costs; nil: one unit
}

// makeRare returns s.rare, to be written to.
func (s *leaseEntry) makeRare() *rareLease {
	if s.rare == nil {
		s.rare = &rareLease{}
	}
	return s.rare
}

// mark returns the mark that the lease has, nil without one.
func (s *leaseEntry) mark() *Mark {
	if s.rare == nil {
		return nil
	}
	return s.rare.mark
}

// endRare is for the end of the lease. It returns the units that the lease counts.
func (s *leaseEntry) endRare(how ending) (units int64) {
	if s.rare.mark != nil {
		s.unbind(how)
	}
	if st := s.rare.startup; st != nil {
		st.inFlight--
	}
	units = 1
	if lc := s.rare.cost; lc != nil {
		units = lc.units
		lc.end()
	}
	*s.rare, s.rare = rareLease{}, nil // a cost may be kept that has room for it
	return units
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

// newLease counts one more RPC of an endpoint set in flight on n, and on a connection
// unless it is nil. cost is the RPC's, nil without one.
func (l *Ledger) newLease(n *endpoint, r *EndpointSet, c *Connection, cost *Cost) Lease {
	l.leases++
	if !l.clock.used {
		l.startClock()
	}
	n.picks++
	var s *leaseEntry
	k := r.counters
	if last := len(k.free) - 1; last >= 0 {
		s = k.free[last] // which stays behind the end: one pointer less to write
		k.free = k.free[:last]
	} else {
		s = &leaseEntry{counters: k}
	}
	s.endpoint, s.start = n, l.clock.now
	if cost == nil {
		n.count(1, 1)
	} else {
		n.count(1, cost.attach(s))
	}
	if n.load.inFlight > int64(n.highest) {
		n.highest = int32(n.load.inFlight)
	}
	if c != nil {
		s.connection = c
		c.begin()
	}
	if r.startup != nil {
		s.makeRare().startup = r.startup
		r.startup.inFlight++
	}
	n.leases.push(s)
	return Lease{entry: s, gen: s.gen}
}

// Release gives the lease back: its endpoint has one RPC less in flight. It reports
// whether it did. Only the first call of Release or Fail on a lease does; later
// ones change nothing. It never blocks for long and calls nobody, so it may run
// under any of the caller's locks.
func (le Lease) Release() bool { return le.end(endReleased) }

// Succeed is Release for an attempt that succeeded: its connection is of use.
func (le Lease) Succeed() bool { return le.end(endSucceeded) }

// Fail is Release for an attempt that failed. When it did so within the
// FailurePenalty of its endpoint set's guards, its units stay on the endpoint as a
// penalty until that time after its start: an endpoint that fails at once is not
// the emptiest. An attempt that lived longer leaves none.
func (le Lease) Fail() bool { return le.end(endFailed) }

// ending is what has become of an attempt.
type ending int

const (
	endReleased ending = iota // nothing that says anything of its endpoint
	endSucceeded
	endFailed
)

// end takes the ledger's mutex.
func (le Lease) end(how ending) bool {
	s := le.entry
	if s == nil {
		return false
	}
	var next *Connection
	mu := s.counters.mu
	mu.Lock()
	live := s.gen == le.gen
	if live {
		if c := s.connection; c != nil {
			next = c.next
		}
		s.end(how)
	} else {
		s.counters.DoubleReleases++
	}
	mu.Unlock()
	for next != nil {
		next = next.movedEnded()
	}
	return live
}

// end ends the entry's lease and gives the room to RPCs that wait.
func (s *leaseEntry) end(how ending) {
	c, n := s.connection, s.endpoint
	l, units := n.ledger, int64(1)
	if s.rare != nil {
		units = s.endRare(how)
	}
	n.leases.remove(s)
	s.endpoint, s.connection = nil, nil
	s.gen++
	if c := s.counters; len(c.free) < maxFree && !c.closed {
		c.free = append(c.free, s)
	}
	l.leases--
	n.count(-1, -units)
	if c != nil {
		if how == endSucceeded && !c.succeeded {
			c.succeeded = true
		}
		c.end()
	}
	if how == endFailed {
		n.failures++
		if l.addPenalty(n, c, s.start+s.counters.penalty, units) {
			s.counters.Penalties++
			s.counters.penalized(n)
		}
	}
	if c != nil && c.limit != noLimit {
		c.lookAhead(l.clock.now)
	}
	if l.waiting > 0 {
		l.grantOn(n)
	}
	if len(n.places) == 0 { // else it has a member
		l.retire(n)
	}
}
