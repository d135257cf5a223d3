package state

import (
	"container/list"
	"math"
	"math/rand/v2"
	"time"
)

// group is the RPCs of sessions on one connection.
type group struct {
	plan       *plan
	set        *EndpointSet
	endpoint   *endpoint
	connection *Connection
	bound      int           // leases that have marks
	marks      *list.List    // of *Mark, that may be asked, the oldest first
	units      int64         // that those cost
	notReady   time.Duration // since when the endpoint is not, while the connection is
	reason     MoveReason    // why they cannot stay; MoveLevel: they can
	until      time.Duration // when the last of them is to be asked; 0 while they can stay, or cannot go
	told       bool          // the server has reported since the last look
	drawn      int           // RPCs that chance has drawn to leave it since
	drawnBy    time.Duration // when the last of those is to be asked
	inherited  bool          // of an endpoint set that has closed, or whose list is empty
}

// groupOf returns the group of a lease.
func (p *plan) groupOf(s *leaseEntry) *group {
	g := p.groups[s.connection]
	if g == nil {
		g = &group{plan: p, set: p.set, endpoint: s.endpoint, connection: s.connection, marks: list.New(), notReady: never}
		p.groups[s.connection] = g
	}
	return g
}

// mustGo reports whether the group's RPCs cannot stay where they are, and notes why.
//
// Outlier detection tells the policy of an ejection as a health check tells it that an
// endpoint does not serve: both are MoveNotReady. That one has to last as long as what is
// uneven, since both may be short. An exit of the connection from READY is for good.
func (g *group) mustGo(now time.Duration) bool {
	if g.inherited {
		g.reason = MoveDeparted
		return !g.endpoint.listedAs(g.set.name)
	}
	m, c := g.endpoint.memberOf(g.set), g.connection
	ready := m == nil || m.readySet != nil || c.ended
	if ready {
		g.notReady = never
	} else if g.notReady == never {
		g.notReady = now
	}
	switch v := g.set.inUse(); {
	case m == nil:
		g.reason = MoveDeparted
	case c.ended || c != m.connection:
		g.reason = MoveConnection
	case !ready && now-g.notReady >= settle:
		g.reason = MoveNotReady
	case m.draining():
		g.reason = MoveDraining
	case ready && v != nil && m.readySet.priority > v.priority:
		g.reason = MovePriority
	default:
		return false
	}
	return true
}

// dueOf returns how many of n RPCs are to be asked now, each at a random moment until a
// time, and so evenly over that time: of those that are left the part that has passed,
// since the last look, of the time that was left then.
func dueOf(n int, passed, now, until time.Duration) int {
	if now >= until {
		return n
	}
	return int(float64(n)*float64(passed)/float64(until-now+passed) + rand.Float64())
}

// clear asks those of a group that cannot stay, each at a random moment until DrainWithin
// is over, from when that was so or is less than before. As long as there is nowhere to go,
// none is.
func (p *plan) clear(g *group, passed time.Duration, steps *steps) {
	now := p.set.ledger.clock.now
	until := now + p.set.rebalance.DrainWithin*9/10 // the last one has time to move
	if g.until == 0 {
		g.until, passed = until, 0
		p.announce(Plan{g.reason, g.marks.Len(), g.endpoint.address()})
	}
	g.until = min(g.until, until)
	if g.awaitsConnection(now) {
		return
	}
	for n := dueOf(g.marks.Len(), passed, now, g.until); n > 0; n-- {
		k := g.oldest(now)
		to := p.destination(g.endpoint, k.units(), steps)
		if to == nil || !g.askable(k) || !p.available(to) {
			return // or no more: there was a pause
		}
		p.ask(k, to, g.reason)
		steps.did(unitChange)
	}
}

// awaitsConnection reports whether the group's endpoint connects again, which may be the best
// place for its RPCs: one that only closes its connections for their age keeps what it
// has. That is waited for until it has failed, and for half of the time at most.
func (g *group) awaitsConnection(now time.Duration) bool {
	m := g.endpoint.memberOf(g.set)
	return g.reason == MoveConnection && m.readySet == nil && !m.slowStart.pending &&
		g.until-now > g.set.rebalance.DrainWithin*9/20
}

// insert puts k, whose lease began at a time, among those that may be asked: nearly
// always last.
func (g *group) insert(k *Mark, start time.Duration) *list.Element {
	e := g.marks.Back()
	for e != nil && e.Value.(*Mark).entry.Load().start > start {
		e = e.Prev()
	}
	if e == nil {
		return g.marks.PushFront(k)
	}
	return g.marks.InsertAfter(k, e)
}

// fitAmong bounds how many RPCs are looked at for the one that fits best.
const fitAmong = 256

// fitting returns, of the oldest that oldest might return, the one that costs what is nearest to
// some units, nil without one.
func (g *group) fitting(by time.Duration, units float64) *Mark {
	best := g.oldest(by)
	if best == nil || g.units == int64(g.marks.Len()) {
		return best
	}
	off := func(k *Mark) float64 { return math.Abs(float64(k.units()) - units) }
	for e, i := best.element, 0; e != nil && i < fitAmong; e, i = e.Next(), i+1 {
		k := e.Value.(*Mark)
		if k.entry.Load().start > by {
			break
		}
		if k.session.move.Load() == nil && off(k) < off(best) {
			best = k
		}
	}
	return best
}

// askable reports whether k, which oldest has returned, may still be asked, after a pause: its RPC may
// have ended meanwhile, and its next attempt be elsewhere, even in another ledger, whose
// mutex then guards what k has. k may be nil.
func (g *group) askable(k *Mark) bool {
	if k == nil {
		return false
	}
	s := k.entry.Load()
	return s != nil && s.counters.mu == g.set.ledger.mu && k.group == g && k.element != nil && k.session.move.Load() == nil
}

// oldest returns the oldest of the group that may be asked and has begun by some time,
// nil without one. One whose session moves already is passed over.
func (g *group) oldest(by time.Duration) *Mark {
	for e := g.marks.Front(); e != nil; e = e.Next() {
		k := e.Value.(*Mark)
		if s := k.entry.Load(); s == nil || s.start > by {
			return nil
		}
		if k.session.move.Load() == nil {
			return k
		}
	}
	return nil
}
