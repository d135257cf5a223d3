package state

import (
	"container/list"
	"math/rand/v2"
	"time"
)

// planPeriod is how often plans are looked at. A stream lives for minutes, so it does not
// matter when within that it is asked.
const planPeriod = 5 * Tick

// plan moves the RPCs of an endpoint set's sessions. It exists while they have some.
//
// The planned load of an endpoint, by which it asks, is what is in flight there, with
// the places that are kept, without the RPCs that were asked. It is the ledger's, so
// the plans of all endpoint sets plan as one.
type plan struct {
	set    *EndpointSet
	bound  int // leases that have marks
	groups map[*Connection]*group
	moves  *list.List    // of *move, under way, the oldest first
	ranAt  time.Duration // by the ledger's clock
	level  levelling

	unanswered int // asks in a row that nobody has answered yet
	lastAsk    time.Duration

	// Of this look.
	passed   time.Duration // since the one before
	members  []*Member     // the level in use
	fleet    *fleet        // nil where reports say too little of it
	sources  []*group      // those whose RPCs may stay
	leaving  int           // RPCs that cannot stay, and are still to be asked
	stranded int64         // units of those on endpoints that are not in use
	then     float64       // the fair share once those are elsewhere, of all plans
}

// planNow returns the endpoint set's plan, a new one where there is none.
func (r *EndpointSet) planNow() *plan {
	if r.plan == nil {
		l := r.ledger
		r.plan = &plan{set: r, groups: map[*Connection]*group{}, moves: list.New(), ranAt: l.clock.read(), level: newLevelling()}
		l.planning[r] = struct{}{}
		l.startClock()
	}
	return r.plan
}

// endIfUnused ends the plan once no session has an RPC or a move.
func (p *plan) endIfUnused() {
	if r := p.set; p.bound == 0 && p.moves.Len() == 0 && !p.over() {
		r.plan = nil
		delete(r.ledger.planning, r)
	}
}

// over reports whether the plan has ended, as it may in a pause: it does not hear of members any more.
func (p *plan) over() bool { return p.set.plan != p }

// sessions returns how many RPCs of sessions there are, moving how many moves. p may be
// nil.
func (p *plan) sessions() int64 {
	if p == nil {
		return 0
	}
	return int64(p.bound)
}

func (p *plan) moving() int64 {
	if p == nil {
		return 0
	}
	return int64(p.moves.Len())
}

// close ends the plan of an endpoint set that closes. RPCs that it holds stay, unless there is
// another one that may ask them to go.
func (p *plan) close() {
	for p.moves.Len() > 0 {
		p.moves.Front().Value.(*move).end(&p.set.counters.MovesGivenUp)
	}
	p.bequeath(p.set.heir())
	p.set.plan = nil
	delete(p.set.ledger.planning, p.set)
}

// runPlans looks at the plans when that is due, step by step. First those are asked that
// cannot stay: where they go may make loads level.
func (l *Ledger) runPlans() {
	if len(l.planning) == 0 || l.clock.now < l.planAt {
		return
	}
	l.planAt = l.clock.now + planPeriod
	steps := l.inSteps()
	var leaving int
	var stranded int64
	for r := range l.planning {
		if p := r.plan; p != nil {
			p.runLeaving(&steps)
			leaving, stranded = leaving+p.leaving, stranded+p.stranded
		}
	}
	for r := range l.planning {
		if p := r.plan; p != nil {
			if len(p.members) > 0 {
				p.runLevelling(leaving, stranded, &steps)
			}
			p.forgetLook()
		}
	}
}

// forgetLook forgets what only the look that ends needs.
func (p *plan) forgetLook() {
	clear(p.members)
	clear(p.sources)
	p.members, p.sources, p.fleet = p.members[:0], p.sources[:0], nil
}

// runLeaving gives up what takes too long, and asks those that cannot stay. It notes
// what the rest of this look needs.
func (p *plan) runLeaving(steps *steps) {
	now := p.set.ledger.clock.now
	p.passed = now - p.ranAt
	p.ranAt = now
	p.leaving, p.stranded = 0, 0
	p.expireMoves(steps)
	if p.set.rebalance.PerSecond == 0 {
		return
	}
	if heir := p.set.emptyFor(); heir != nil {
		p.bequeath(heir)
		p.endIfUnused()
		return
	}
	v := p.set.inUse()
	for m := range p.set.members {
		if v != nil && m.eligibleIn == v {
			p.members = append(p.members, m)
		}
		steps.did(unitLook)
	}
	p.fleet = p.fleetNow(v, steps)
	somewhere := p.localDestination(nil, 1, steps) != nil
	for c, g := range p.groups {
		if p.fleet == nil {
			g.forgetDraw()
		}
		switch {
		case g.marks.Len() == 0:
			delete(p.groups, c)
		case !g.mustGo(now):
			g.until = 0
			if !g.inherited {
				p.sources = append(p.sources, g)
			}
		case somewhere:
			g.forgetDraw()
			p.clear(g, p.passed, steps)
			p.leaving += g.marks.Len()
			if m := g.endpoint.memberOf(p.set); m == nil || m.eligibleIn != v {
				p.stranded += g.units
			}
		default:
			g.forgetDraw()
			g.until = 0
		}
		steps.did(unitLook)
	}
}

// inUse returns the ready set of the priority level in use, nil when none is.
func (r *EndpointSet) inUse() *ReadySet {
	q := &r.queue
	if len(q.queueSets) > 0 {
		return q.queueSets[0]
	}
	var first *ReadySet
	if !q.told {
		for _, v := range r.readySets {
			if v.eligible > 0 && (first == nil || v.priority < first.priority) {
				first = v
			}
		}
	}
	return first
}

// announce tells of moves that begin.
func (p *plan) announce(about Plan) {
	if f := p.set.rebalance.Planned; f != nil {
		go f(about)
	}
}

// planned returns the endpoint's planned load.
func (n *endpoint) planned() int64 { return n.load.units - n.leaving }

// share returns the planned load of m's endpoint over m's weight, with some units more.
func (m *Member) share(more int64) float64 {
	return float64(m.endpoint.planned()+more) / m.effectiveWeight()
}

// available reports whether RPCs may move to m. A plan that was closed in a pause has nobody
// to ask, though members that are still to be removed look as they did.
func (p *plan) available(m *Member) bool {
	n := m.endpoint
	return !p.over() && n != nil && m.eligibleIn != nil && m.eligibleIn == p.set.inUse() && !m.full &&
		!m.connection.ended && n.load.penalty == 0 && n.shun.until <= p.set.ledger.clock.now
}

// destination returns the member that an RPC of some units may move to, nil without one, as
// a pick chooses it. For an RPC that must go, from is where it counts already: another
// connection of the same endpoint may be the best.
func (p *plan) destination(from *endpoint, units int64, steps *steps) *Member {
	m := p.localDestination(from, units, steps)
	if f := p.fleet; f != nil && m != nil {
		return f.choose(p, m, from, units)
	}
	return m
}

// localDestination is destination by planned shares. Equals are as likely, so that a fleet
// does not move in step.
func (p *plan) localDestination(from *endpoint, units int64, steps *steps) *Member {
	var best *Member
	var least float64
	ties := 0
	for _, m := range p.members {
		steps.did(unitLook)
		if !p.available(m) {
			continue
		}
		more := units
		if m.endpoint == from {
			more = 0
		}
		switch s := m.share(more); {
		case best == nil || s < least:
			best, least, ties = m, s, 1
		case s == least:
			if ties++; rand.IntN(ties) == 0 {
				best = m
			}
		}
	}
	return best
}
