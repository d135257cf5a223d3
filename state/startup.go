package state

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// startup is the time in which an endpoint set has members for which RPCs may wait
// since they connect, or RPCs that have waited and not been seen since.
type startup struct {
	inFlight     int // leases of the endpoint set that began since, and live
	connecting   int // members that RPCs may wait for
	reservations map[<-chan struct{}]*reservation
}

// reservation is an RPC that waits for a member that connects, with its lease there.
type reservation struct {
	rpc     <-chan struct{}
	arrival uint64 // in the ledger
	lease   Lease
	member  *Member // nil once it is over
	stop    func() bool
}

// takeUpTime is how long a member that is ready is reserved for RPCs that have waited
// for it: one that does not ask by then runs elsewhere.
const takeUpTime = time.Second

// startupNow returns the endpoint set's start-up, a new one where there is none.
func (r *EndpointSet) startupNow() *startup {
	if r.startup == nil {
		r.startup = &startup{reservations: map[<-chan struct{}]*reservation{}}
		r.ledger.starting[r] = struct{}{}
		r.ledger.startClock()
	}
	return r.startup
}

// Starting reports whether RPCs of the endpoint set wait, or may wait, for members that
// connect: when one of these is ready, they should call AcquireOrQueue again.
func (r *EndpointSet) Starting() bool {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	return r.startup != nil
}

// reserved is for an RPC while the endpoint set starts up. When its outcome is Empty,
// it waits for nobody and is to choose among the ready.
func (a *acquisition) reserved() (outcome Outcome, stop func() bool) {
	s := a.set.startup
	v := a.readySets[0]
	if res := s.reservations[a.rpc]; res != nil {
		m := res.member
		switch c := m.connecting; {
		case c.readySet != v || c.index != notConnecting && !v.mayWait(a.deadline):
			stop = res.stop
			res.end() // it chooses anew
		case c.index == notConnecting:
			return a.takeUp(res)
		default:
			return Reserved, nil
		}
		if s = a.set.startup; s == nil {
			return Empty, stop
		}
	}
	if a.rpc == nil || s.inFlight == 0 || !v.mayWait(a.deadline) || a.set.queue.waiting() > 0 {
		return Empty, stop
	}
	m := v.connecting.members[0]
	if m.connecting.score < v.lowestScore(a.tried) && !slices.Contains(a.tried, m.endpoint) {
		a.reserve(m)
		return Reserved, stop
	}
	return Empty, stop
}

// mayWait reports whether an RPC may wait for members that connect: not when its
// deadline is nearer than twice the rest of the time.
func (v *ReadySet) mayWait(deadline time.Time) bool {
	l := v.ledger
	if len(v.connecting.members) == 0 {
		return false
	}
	rest := v.connecting.until - l.clock.read()
	return rest > 0 && (deadline.IsZero() || deadline.Sub(l.clock.epoch)-l.clock.now >= 2*rest)
}

// lowestScore returns the lowest score of the ready members whose endpoints were not
// tried; when all are at their caps, or tried, one that is beyond all but not a cap's.
// An RPC waits for nobody where none is ready.
func (v *ReadySet) lowestScore(tried []*endpoint) float64 {
	all := v.order.Len()
	untried := all
	for _, m := range v.membersOf(tried) {
		if m.handle != order.None {
			untried--
		}
	}
	switch {
	case all == 0 && v.full == 0 || 0 < untried && untried < all:
		return 0 // none is ready, or one is left to try
	case untried == 0:
		return math.MaxFloat64
	}
	return v.order.LeastAfter()
}

// reserve lets the RPC wait for m.
func (a *acquisition) reserve(m *Member) {
	c := m.connecting
	l := a.set.ledger
	l.arrivals++
	res := &reservation{rpc: a.rpc, arrival: l.arrivals, member: m, lease: l.newLease(m.endpoint, a.set, nil, a.cost)}
	if c.reserved == nil {
		c.reserved = map[*reservation]struct{}{}
	}
	c.reserved[res] = struct{}{}
	a.set.startup.reservations[a.rpc] = res
	reservations.add(a.rpc, res)
	a.reservation = res
}

// takeUp gives the RPC its place, since the member is ready. Its attempt begins now.
func (a *acquisition) takeUp(res *reservation) (Outcome, func() bool) {
	s, l := res.lease.entry, a.set.ledger
	n := s.endpoint
	n.leases.remove(s)
	s.start = l.clock.read()
	n.leases.push(s)
	a.lease, a.value = res.lease, res.member.value
	res.member.connecting.readySet.picks++
	res.member.connection.picks++
	if len(a.tried) > 0 {
		a.set.counters.RetriesToOtherEndpoint++
	}
	res.remove()
	return Chosen, res.stop
}

// remove forgets the reservation. The lease is the caller's.
func (res *reservation) remove() {
	m := res.member
	res.member = nil
	delete(m.connecting.reserved, res)
	delete(m.set.startup.reservations, res.rpc)
	reservations.remove(res.rpc, res)
	m.forgetConnecting()
}

// end gives the place back.
func (res *reservation) end() {
	lease := res.lease
	res.remove()
	lease.entry.end(endReleased)
}

// watch sees to it that the reservation ends with its RPC. It takes the ledger's mutex
// and calls ctx without it: a context may be anybody's.
func (res *reservation) watch(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { res.cancelUnlocked() })
	mu := res.lease.entry.counters.mu
	mu.Lock()
	res.stop = stop
	gone := res.member == nil
	mu.Unlock()
	if gone {
		stop()
	}
}

// cancelUnlocked is end for those who do not hold the ledger's mutex. It returns what
// ends the watch, which may call others.
func (res *reservation) cancelUnlocked() (stop func() bool) {
	mu := res.lease.entry.counters.mu
	mu.Lock()
	defer mu.Unlock()
	if res.member == nil {
		return nil
	}
	res.end()
	return res.stop
}

// reserved returns how many RPCs wait for members that connect, or are to take up what
// they have waited for.
func (s *startup) reserved() int64 {
	if s == nil {
		return 0
	}
	return int64(len(s.reservations))
}

// stops returns what ends the watches over the RPCs that wait.
func (s *startup) stops() []func() bool {
	var stops []func() bool
	if s != nil {
		for _, res := range s.reservations {
			if res.stop != nil {
				stops = append(stops, res.stop)
			}
		}
	}
	return stops
}

// takeBackReserved takes back what RPCs have reserved on m.
func (m *Member) takeBackReserved() {
	for m.connecting != nil && len(m.connecting.reserved) > 0 {
		for res := range m.connecting.reserved {
			res.end()
			break
		}
	}
}

// expireReserved takes back what RPCs have reserved and not taken up in time.
func (l *Ledger) expireReserved() {
	for r := range l.starting {
		for _, res := range r.startup.reservations {
			if c := res.member.connecting; c.index == notConnecting && c.readyAt+takeUpTime <= l.clock.now {
				res.end()
			}
			if r.startup == nil {
				break
			}
		}
	}
}
