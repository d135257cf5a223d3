package state

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

const (
	// leavingPart is the part of what a server has above its level that leaves it after a
	// report. Clients act on it without knowing of each other, and less is left to do
	// each time.
	leavingPart = 0.7
	// aboveLevelBy is the part of its level that a server has to be above it for RPCs to
	// leave, at least one RPC: the costliest, where they have costs.
	aboveLevelBy = 0.05
)

// fleet is what reports say of the priority level in use, for one look of a plan: what
// all clients have in flight there, as far as is known.
type fleet struct {
	ready *ReadySet
	units float64       // that others' RPCs are taken to cost each: what the ledger's do on average
	level float64       // units in flight for each unit of weight
	since time.Duration // from when on figures are young
}

// fleetNow returns nil where reports say too little: too few servers report, or others
// have few RPCs beside this process's own, as it is for picks; or a report is out of date
// before the next one comes, since RPCs are shorter.
func (p *plan) fleetNow(v *ReadySet, steps *steps) *fleet {
	if v == nil || v.young == nil || len(p.members) == 0 || !p.set.ledger.tellsOfFleet(v) {
		return nil
	}
	own, _ := p.fairShare(0, steps)
	if y := v.young; y != nil && y.told > 0 { // or no more: there was a pause
		l := p.set.ledger
		units := l.unitsOfRPC()
		p.level.fleetAt = l.clock.now
		return &fleet{v, units, y.mean*units + own, y.since(l.clock.now)}
	}
	return nil
}

// tellsOfFleet reports whether plans may go by what v knows of reports.
func (l *Ledger) tellsOfFleet(v *ReadySet) bool {
	y := v.young
	return y.enough(&v.order, v.eligible, l.unitsOfRPC()) && y.expiry >= y.interval && l.clock.now-y.last < validFor*y.interval
}

// entry returns what is known of m, nil if nothing is.
func (f *fleet) entry(m *Member) *youngEntry {
	if f == nil || m == nil || m.eligibleIn != f.ready || f.ready.young == nil {
		return nil
	}
	if h, entries := m.anyHandle(), f.ready.young.entries; int(h) < len(entries) {
		return &entries[h]
	}
	return nil
}

// above returns by how many units m's server is above its level by its last report, with
// what this process has planned since. It is false for one that does not tell.
func (f *fleet) above(m *Member) (float64, bool) {
	e := f.entry(m)
	if e == nil || e.is != youngTold {
		return 0, false
	}
	return e.others*f.units + float64(m.endpoint.planned()) - f.levelOf(m), true
}

func (f *fleet) levelOf(m *Member) float64 { return f.level * m.effectiveWeight() }

// tooMuch reports whether RPCs should leave a server that is so much above its level.
func (f *fleet) tooMuch(m *Member, above float64) bool {
	return above > max(float64(m.set.ledger.largestCost()), aboveLevelBy*f.levelOf(m))
}

// unserved returns the part of what servers lack that those which have too much do not
// have to give.
func (f *fleet) unserved(members []*Member) float64 {
	lack, leaving := 0.0, 0.0
	for _, m := range members {
		switch above, ok := f.above(m); {
		case !ok:
		case above < 0:
			lack -= above
		case f.tooMuch(m, above):
			leaving += above
		}
	}
	return max(0, 1-leaving/max(lack, 1))
}

// choose chooses as a pick does: among the member of the least planned share and those
// whose reports are young, by what they have with the RPC of some units, which comes from an
// endpoint.
func (f *fleet) choose(p *plan, exact *Member, from *endpoint, units int64) *Member {
	y := f.ready.young
	if y == nil {
		return exact
	}
	var best *Member
	low := math.Inf(1)
	if exact != nil && p.available(exact) { // or no more: there was a pause
		others := y.mean * exact.effectiveWeight()
		if e := f.entry(exact); e != nil && e.logged && e.at >= f.since {
			others = e.others
		}
		best, low = exact, f.share(exact, others, from, units)
	}
	for h, k := y.log.youngest, 0; h != order.None && k < candidates; k++ {
		e := &y.entries[h]
		if e.at < f.since {
			break
		}
		if m := f.ready.order.Value(h).member(); m != nil && p.available(m) {
			if s := f.share(m, e.others, from, units); s < low {
				best, low = m, s
			}
		}
		h = e.older
	}
	return best
}

// share returns what m's server has for each unit of weight with an RPC of some units more,
// which is there already when it is from there.
func (f *fleet) share(m *Member, others float64, from *endpoint, units int64) float64 {
	own := m.endpoint.planned()
	if m.endpoint != from {
		own += units
	}
	return (others*f.units + float64(own)) / m.effectiveWeight()
}

// told notes that the server of m has reported: the plan is to look whether RPCs should
// leave it.
func (p *plan) told(m *Member) {
	if g := p.groups[m.connection]; g != nil {
		g.told = true
	}
}

// forgetDraw forgets what is to leave the group by a report.
func (g *group) forgetDraw() { g.told, g.drawn = false, 0 }

// runFleet asks RPCs to leave servers that have too much by their reports, and brings
// newcomers theirs.
func (p *plan) runFleet(f *fleet, steps *steps) {
	now := p.set.ledger.clock.now
	for _, g := range p.sources {
		if g.told {
			g.told = false
			p.drawLeaving(g, f)
		}
		for n := dueOf(g.drawn, p.passed, now, g.drawnBy); n > 0 && p.level.credit >= 1 && p.mayAsk(); n-- {
			g.drawn--
			k := g.oldest(now - p.set.rebalance.MinAge)
			if to := p.lower(g, f, k.units(), steps); to != nil && g.askable(k) {
				p.ask(k, to, MoveLevel)
				p.level.credit--
				steps.did(unitChange)
			}
		}
		steps.did(unitLook)
	}
}

// drawLeaving draws how many of a group's RPCs leave, each by chance and at a random
// moment, now that its server has reported.
func (p *plan) drawLeaving(g *group, f *fleet) {
	g.drawn = 0
	m := g.member()
	above, ok := f.above(m)
	if !ok || !f.tooMuch(m, above) {
		return
	}
	part := leavingPart * above / (above + f.levelOf(m))
	g.drawn = int(part*float64(g.marks.Len()) + rand.Float64())
	g.drawnBy = p.set.ledger.clock.now + f.ready.young.interval/2
	if g.drawn > 0 {
		p.announce(Plan{MoveLevel, g.drawn, g.endpoint.address()})
	}
}

// lower returns the member that an RPC of a group, of some units, moves to, nil when it had
// better stay. It must be known to have at most that above its level then.
func (p *plan) lower(g *group, f *fleet, units int64, steps *steps) *Member {
	to := f.choose(p, p.localDestination(nil, units, steps), nil, units)
	from := g.member()
	above, ok := f.above(from)
	if !ok || above < 1 { // it has changed since it was drawn
		return nil
	}
	more, ok := f.above(to)
	if !ok || more > 0 || f.entry(to).at < f.since || !p.available(to) || p.level.unsettled(to, p.set.ledger.clock.now) {
		return nil
	}
	if f.share(from, f.entry(from).others, from.endpoint, units) <= f.share(to, f.entry(to).others, nil, units) {
		return nil
	}
	return to
}
