package state

import (
	"math"
	"math/rand/v2"
	"time"
)

const (
	// settle is how long loads are uneven, without a break, before anything moves for it:
	// longer than what a deployment or a burst of short RPCs makes uneven for a moment.
	settle = 5 * time.Second
	// unevenBy is the part of the fair share from which on a difference is worth moves.
	unevenBy = 0.1
	// flapWithin is how soon after it joined an endpoint leaves that flaps. Each time the
	// loads have twice as long to settle, up to maxSettle, until none has for so long.
	flapWithin = time.Minute
	maxSettle  = 2 * time.Minute
	// maxUnanswered is how many are asked in a row, at least, without that one has moved:
	// then the application does not listen, and one is asked each probeAfter.
	maxUnanswered = 10
	probeAfter    = time.Minute
)

// levelling is a plan's part that makes loads level.
type levelling struct {
	unevenSince time.Duration // never while they are not
	active      bool          // they have been for long enough, and are not level yet
	credit      float64       // asks that PerSecond allows now
	settle      time.Duration
	flapped     time.Duration // when an endpoint last did
	fleetAt     time.Duration // when reports told of the fleet last
	newcomers
}

func newLevelling() levelling {
	return levelling{unevenSince: never, settle: settle, flapped: never, fleetAt: never, newcomers: newcomers{drawAt: never}}
}

// fairShare returns the planned load of the priority level in use for each unit of weight,
// and what it is with some units more.
func (p *plan) fairShare(more int64, steps *steps) (fair, then float64) {
	var load, weight float64
	for _, m := range p.members {
		if m.endpoint != nil && m.eligibleIn != nil {
			load += float64(m.endpoint.planned())
			weight += m.effectiveWeight()
		}
		steps.did(unitLook)
	}
	return load / weight, (load + float64(more)) / weight
}

// runLevelling asks RPCs to move from the highest planned share to the lowest, as long as
// the one is higher than the other is with one more. So each ask lessens what is uneven,
// none can be undone by another, and it ends with as few as there can be. Where RPCs have
// costs, one more is the costliest of the ledger's: what picks leave uneven is not worth
// moves. The one that goes makes the two as level as one can.
//
// While others are still to be asked, since they cannot stay, only an endpoint is left that
// has more than its share even when those are there.
func (p *plan) runLevelling(leaving int, stranded int64, steps *steps) {
	lv, now, b, passed := &p.level, p.set.ledger.clock.now, p.set.rebalance, p.passed
	lv.credit = min(lv.credit+b.PerSecond*passed.Seconds(), max(1, b.PerSecond*planPeriod.Seconds()))
	if lv.settle > settle && now-lv.flapped > flapWithin {
		lv.settle = settle
	}
	fair, then := p.fairShare(stranded, steps)
	if lv.fleetAt != never && now-lv.fleetAt < validFor*p.set.reports {
		lv.unevenSince, lv.active = never, false // what is uneven here may be so for the fleet's sake
		if f := p.fleet; f != nil && leaving == 0 {
			p.runFleet(f, steps)
			p.drawNewcomers(fair)
		}
		return
	}
	if p.then = math.Inf(-1); leaving > 0 {
		p.then = then
	}
	from, to := p.extremes(fair, steps)
	if from == nil { // level
		lv.unevenSince, lv.active = never, lv.active && len(p.set.ramps) > 0
		if leaving == 0 {
			p.drawNewcomers(fair)
		}
		return
	}
	switch by := from.member().share(0) - to.share(0); {
	case by <= unevenBy*fair:
		lv.unevenSince = never
	case lv.unevenSince == never:
		lv.unevenSince = now
	case !lv.active && now-lv.unevenSince >= lv.settle:
		lv.active = true
		p.announce(Plan{Reason: MoveLevel, RPCs: p.excess(fair)})
	}
	for lv.active && lv.credit >= 1 && p.mayAsk() {
		from, to := p.extremesOf(now-b.MinAge, fair, steps)
		if from == nil {
			return
		}
		p.ask(from.fitting(now-b.MinAge, from.member().surplus(to)), to, MoveLevel)
		lv.credit--
		steps.did(unitChange)
	}
}

// mayAsk reports whether the application listens, as far as is known.
func (p *plan) mayAsk() bool {
	inARow := max(maxUnanswered, int(p.set.rebalance.PerSecond*planPeriod.Seconds()))
	return p.unanswered < inARow || p.set.ledger.clock.now-p.lastAsk >= probeAfter
}

// member returns the member that the group's RPCs count on.
func (g *group) member() *Member { return g.connection.member }

// surplus returns how many units of m's planned load would make its share and that of
// another member equal.
func (m *Member) surplus(to *Member) float64 {
	w, v := m.effectiveWeight(), to.effectiveWeight()
	return (float64(m.endpoint.planned())*v - float64(to.endpoint.planned())*w) / (w + v)
}

// worthwhile reports whether one more RPC of a group should move to a member: when that
// has a lower share even with the costliest RPC more, and one of the two is off its fair
// load by a whole RPC, or by half of the costliest and half a unit. By
// equal weights the one implies the other. By others, less than a whole RPC is what picks
// leave to turns by weight, and is for the newcomers' draw.
func (p *plan) worthwhile(from *group, to *Member, fair float64) bool {
	m, largest := from.member(), p.set.ledger.largestCost()
	if m == nil || m.eligibleIn == nil || !p.available(to) || m.share(0) <= fair || m.share(0) <= to.share(largest) {
		return false
	}
	whole := (1 - 1e-9) * float64(largest+1) / 2 // rounding may take a bit from it
	if m.above(p.then) < whole {
		return false
	}
	return m.above(fair) >= whole || to.above(fair) <= -whole
}

// above returns by how many units m's planned load is above its fair one.
func (m *Member) above(fair float64) float64 {
	return float64(m.endpoint.planned()) - fair*m.effectiveWeight()
}

// extremes returns the group of the highest planned share and the member of the lowest
// that it should move RPCs to, nil when loads are level. Equals are as likely.
func (p *plan) extremes(fair float64, steps *steps) (*group, *Member) {
	return p.extremesOf(math.MaxInt64, fair, steps)
}

// extremesOf does so among the groups that have RPCs which began by some time.
func (p *plan) extremesOf(by time.Duration, fair float64, steps *steps) (*group, *Member) {
	to := p.destination(nil, p.set.ledger.largestCost(), steps)
	if to == nil {
		return nil, nil
	}
	var from *group
	most, ties := 0.0, 0
	for _, g := range p.sources {
		steps.did(unitLook)
		m := g.member()
		if m == nil || m.eligibleIn == nil || g.oldest(by) == nil {
			continue
		}
		switch s := m.share(0); {
		case from == nil || s > most:
			from, most, ties = g, s, 1
		case s == most:
			if ties++; rand.IntN(ties) == 0 {
				from = g
			}
		}
	}
	if from == nil || from.oldest(by) == nil || !p.worthwhile(from, to, fair) { // or no more: there was a pause
		return nil, nil
	}
	return from, to
}

// excess returns how many RPCs have to move, about.
func (p *plan) excess(fair float64) int {
	n := 0.0
	for _, g := range p.sources {
		if m := g.member(); m != nil && m.eligibleIn != nil {
			n += max(0, m.above(fair)) * float64(g.marks.Len()) / float64(max(1, g.units))
		}
	}
	return int(math.Round(n))
}
