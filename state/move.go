package state

import (
	"container/list"
	"slices"
	"time"
)

// moveWithin is how long a place is kept for an RPC that was asked to move: one that
// takes longer does not listen, or waits for something that may never come.
const moveWithin = 10 * time.Second

// move is under way from the ask until the session's next RPC has begun and the one that
// was asked is over, in whichever order, or until it is given up. A session has one at a
// time.
type move struct {
	set     *EndpointSet
	session *Session
	asked   *Mark
	from    *endpoint
	reason  MoveReason
	cost    *Cost         // that its next RPC takes along; nil where that is one unit
	units   int64         // that it costs where it is
	due     time.Duration // when it is given up, by the ledger's clock
	element *list.Element // in the plan

	place   Lease   // at the destination; zero once it has been taken up or given back
	member  *Member // of the place
	arrived bool    // the next RPC has begun
	left    bool    // the one that was asked is over
}

// ask asks the RPC of k to move to a member, where a place is kept for the session: unless another
// ledger has just asked another RPC of that.
func (p *plan) ask(k *Mark, to *Member, reason MoveReason) {
	r, l := p.set, p.set.ledger
	s := k.entry.Load()
	mv := &move{set: r, session: k.session, asked: k, from: k.group.endpoint, reason: reason, due: l.clock.now + moveWithin, member: to, cost: s.cost()}
	if !k.session.move.CompareAndSwap(nil, mv) {
		return
	}
	mv.place = l.newLease(to.endpoint, r, to.connection, mv.cost)
	to.endpoint.arriving++
	mv.element = p.moves.PushBack(mv)
	mv.from.asked++
	mv.setUnits(s.units())
	k.dontAsk()
	k.asked, k.move = true, mv
	*r.counters.MovesAsked.of(reason)++
	p.unanswered++
	p.lastAsk = l.clock.now
	close(k.moved)
}

// arrive notes that the session's next RPC has begun.
func (mv *move) arrive() {
	mv.giveBack()
	mv.arrived = true
	mv.set.plan.unanswered = 0
	if mv.left {
		mv.end(&mv.set.counters.MovesDone)
	}
}

// leave notes that the RPC that was asked is over.
func (mv *move) leave() {
	mv.stopLeaving()
	mv.set.plan.unanswered = 0
	if mv.arrived {
		mv.end(&mv.set.counters.MovesDone)
	}
}

// stopLeaving ends what the ask means to the planned load of the endpoint.
func (mv *move) stopLeaving() {
	if !mv.left {
		mv.left = true
		mv.asked.move = nil
		mv.from.asked--
		mv.setUnits(0)
	}
}

// setUnits takes up what the RPC that was asked costs where it is.
func (mv *move) setUnits(units int64) {
	mv.from.leaving += units - mv.units
	mv.units = units
}

// giveBack gives the place back, if there still is one.
func (mv *move) giveBack() {
	if mv.place.entry != nil {
		mv.takePlace().entry.end(endReleased)
	}
}

// takePlace returns the place, which is not kept any more.
func (mv *move) takePlace() (place Lease) {
	place, mv.place = mv.place, Lease{}
	place.entry.endpoint.arriving--
	return place
}

// end ends the move, counted as one that was done, or was given up.
func (mv *move) end(count *MovesByReason) {
	mv.stopLeaving()
	mv.giveBack()
	p := mv.set.plan
	p.moves.Remove(mv.element)
	mv.session.move.Store(nil)
	*count.of(mv.reason)++
	p.endIfUnused()
}

// holds reports whether the place may still be taken up.
func (mv *move) holds() bool {
	m := mv.member
	return mv.place.entry != nil && m.endpoint == mv.place.entry.endpoint && m.eligibleIn != nil && m.eligibleIn == m.set.inUse()
}

// expireMoves gives up the moves whose time is over, and gives places back that cannot
// be taken up any more: the RPC is to choose anew.
func (p *plan) expireMoves(steps *steps) {
	now := p.set.ledger.clock.now
	var next *list.Element
	for e := p.moves.Front(); e != nil; e = next {
		next = e.Next()
		switch mv := e.Value.(*move); {
		case mv.session.move.Load() != mv: // it ended in a pause
		case mv.due <= now:
			mv.end(&p.set.counters.MovesGivenUp)
		case !mv.holds():
			mv.giveBack()
		}
		steps.did(unitLook)
	}
}

// move returns the move that the RPC is the next one of, nil without one.
func (a *acquisition) move() *move {
	if a.mark == nil {
		return nil
	}
	mv := a.mark.session.move.Load()
	if mv == nil || mv.set.ledger != a.set.ledger || mv.asked == a.mark || mv.arrived || a.mark.entry.Load() != nil {
		return nil
	}
	return mv
}

// takePlace gives the RPC the place that is kept for its session. One that cannot be
// taken up is given back, and the RPC chooses as any other.
func (a *acquisition) takePlace(mv *move) bool {
	if mv.place.entry == nil {
		return false
	}
	if mv.set != a.set || !mv.holds() || slices.Contains(a.tried, mv.member.endpoint) || !mv.connect() {
		mv.giveBack()
		return false
	}
	s, l := mv.place.entry, a.set.ledger
	a.lease, a.value = mv.takePlace(), mv.member.value
	s.endpoint.leases.remove(s)
	s.start = l.clock.read() // its attempt begins now
	s.endpoint.leases.push(s)
	a.cost.bind(s)
	mv.member.eligibleIn.picks++
	mv.member.connection.picks++
	if len(a.tried) > 0 {
		a.set.counters.RetriesToOtherEndpoint++
	}
	return true
}

// connect gives the place the connection that the member has now. It reports whether
// there is room.
func (mv *move) connect() bool {
	s, c := mv.place.entry, mv.member.connection
	if s.connection == c {
		return true
	}
	if c.full() {
		return false
	}
	s.connection.end()
	s.connection = c
	c.begin()
	return true
}
