package state

import (
	"math"
	"math/rand/v2"
	"time"
)

// drawWithin is the time in which the processes of a fleet draw, each at a random moment.
const drawWithin = 10 * time.Second

// newcomers are members that have joined the endpoint set, or come back, while it had RPCs of sessions.
//
// A process of one stream is level whatever joins. For a fleet of such processes to
// become level, each gives a newcomer the fraction of an RPC that is its fair share
// beyond whole ones by chance: one RPC, with that probability. Where RPCs have costs, a
// whole one is the costliest.
type newcomers struct {
	all    []newcomer
	drawAt time.Duration // never while there is nobody to draw for
}

type newcomer struct {
	member *Member
	since  time.Duration // by the ledger's clock
	left   float64       // the part of its fraction that is still to be drawn for, 1 at first
	due    int           // RPCs that are to move to it
}

// joined notes that RPCs may be given to m from now on.
func (p *plan) joined(m *Member) {
	lv, now := &p.level, p.set.ledger.clock.read()
	m.newcomerAt = len(lv.all)
	lv.all = append(lv.all, newcomer{member: m, since: now, left: 1})
	if lv.drawAt == never {
		lv.drawAfter(now)
	}
}

func (lv *levelling) drawAfter(joined time.Duration) {
	lv.drawAt = joined + lv.settle + rand.N(drawWithin)
}

// drawAgain has the next draw be after a time.
func (lv *levelling) drawAgain(after time.Duration) {
	if at := after + rand.N(drawWithin); lv.drawAt == never || at < lv.drawAt {
		lv.drawAt = at
	}
}

// unsettled reports whether m has joined so lately that it may flap.
func (lv *levelling) unsettled(m *Member, now time.Duration) bool {
	n := lv.of(m)
	return n != nil && now-n.since < lv.settle
}

// of returns what is known of m as a newcomer, nil if it is none.
func (lv *levelling) of(m *Member) *newcomer {
	if i := m.newcomerAt; i < len(lv.all) && lv.all[i].member == m {
		return &lv.all[i]
	}
	return nil
}

// remove forgets the newcomer at an index. Where all of many endpoints go, no other is looked at.
func (lv *levelling) remove(i int) {
	last := len(lv.all) - 1
	lv.all[i] = lv.all[last]
	lv.all[i].member.newcomerAt = i
	lv.all[last] = newcomer{}
	lv.all = lv.all[:last]
}

// lost notes that no RPCs are given to m any more. One that has only just joined flaps.
func (p *plan) lost(m *Member) {
	lv, now := &p.level, p.set.ledger.clock.read()
	if n := lv.of(m); n != nil {
		if now-n.since < flapWithin {
			lv.settle, lv.flapped = min(2*lv.settle, maxSettle), now
		}
		lv.remove(m.newcomerAt)
	}
}

// drawNewcomers draws for those whose time has come, and asks for those that have won.
// Loads are level, as far as whole RPCs go.
func (p *plan) drawNewcomers(fair float64) {
	if p.over() {
		return
	}
	lv, now := &p.level, p.set.ledger.clock.now
	if lv.drawAt != never && now >= lv.drawAt {
		p.draw(fair)
	}
	for i := range lv.all {
		n := &lv.all[i]
		for m := n.member; n.due > 0; n.due-- {
			if p.above(m, fair) >= 0 {
				n.due = 0
				break
			}
			if lv.credit < 1 || !p.available(m) || !p.mayAsk() {
				break
			}
			k := p.drawSource(fair)
			if k == nil {
				break
			}
			lv.credit--
			p.ask(k, m, MoveLevel)
		}
	}
	for i := len(lv.all) - 1; i >= 0; i-- {
		if n := lv.all[i]; n.left == 0 && n.due == 0 && now-n.since >= flapWithin {
			lv.remove(i)
		}
	}
}

// above returns by how many units a member's planned load is above its fair one, or, where
// its server tells, its server's.
func (p *plan) above(m *Member, fair float64) float64 {
	if f := p.fleet; f != nil {
		if above, ok := f.above(m); ok {
			return above
		}
	}
	return m.above(fair)
}

// draw draws for all newcomers together: each wins with the probability that is its
// fraction, and the number of winners is the sum of the fractions, rounded up or down.
// Endpoint sets that share the endpoints share that out by their RPCs of sessions.
func (p *plan) draw(fair float64) {
	lv, now := &p.level, p.set.ledger.clock.now
	lv.drawAt = never
	part := float64(p.bound) / float64(max(1, p.set.ledger.marks))
	rand.Shuffle(len(lv.all), func(i, j int) { lv.all[i], lv.all[j] = lv.all[j], lv.all[i] })
	sum := rand.Float64()
	for i := range lv.all {
		n := &lv.all[i]
		m := n.member
		if m.newcomerAt = i; n.left == 0 {
			continue
		}
		if now-n.since < lv.settle || m.ramping() {
			if lv.drawAt == never {
				lv.drawAfter(max(n.since, now-lv.settle))
			}
			continue
		}
		drawn := p.drawNow(n)
		if f := -m.above(fair) / float64(p.set.ledger.largestCost()); f > 0 && (f < 1 || p.fleet != nil) && m.eligibleIn == p.set.inUse() {
			whole := math.Floor(sum)
			sum += f * part * drawn
			n.due += int(math.Floor(sum) - whole)
		}
	}
}

// drawNow returns the part of a newcomer's fraction to draw for now, which is not left any
// more: all of it, unless its server may tell what it lacks. Then that is drawn for, and
// what is left after the next report, until it lacks little.
func (p *plan) drawNow(n *newcomer) (part float64) {
	f, now := p.fleet, p.set.ledger.clock.now
	part = n.left
	if e := f.entry(n.member); e != nil && e.is != youngSilent {
		above, told := f.above(n.member)
		if !told {
			p.level.drawAgain(now)
			return 0
		}
		lacks := -above / f.levelOf(n.member)
		if lacks <= unevenBy {
			n.left = 0
			return 0
		}
		if part = min(part, lacks*f.unserved(p.members)); n.left-part > unevenBy {
			n.left -= part
			p.level.drawAgain(now + f.ready.young.interval)
			return part
		}
	}
	n.left = 0
	return part
}

// drawSource returns an RPC that may move to a newcomer, nil without one: each endpoint that
// is above its fair share, and no newcomer, is as likely as it is above that.
func (p *plan) drawSource(fair float64) *Mark {
	lv, by := &p.level, p.set.ledger.clock.now-p.set.rebalance.MinAge
	var source *Mark
	sum := 0.0
	for _, g := range p.sources {
		m := g.member()
		if m == nil || m.eligibleIn == nil || lv.of(m) != nil {
			continue
		}
		above := p.above(m, fair)
		if k := g.oldest(by); k != nil && above > 0 {
			if sum += above; rand.Float64()*sum < above {
				source = k
			}
		}
	}
	return source
}
