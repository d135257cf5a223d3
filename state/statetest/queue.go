package statetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// ticket is an RPC that waits, or was granted room on an endpoint.
type ticket struct {
	roster  *roster
	arrival int
	on      *node // nil while it waits
	start   time.Duration
}

// turn is what a call of EndpointSet.AcquireOrQueue may come to.
type turn struct {
	outcome   state.Outcome
	view      int
	among     []*member // when chosen
	elsewhere bool
	granted   bool
}

// turn returns what may come of an RPC's turn: t is its ticket, if it has one.
func (m *Model) turn(r *roster, t *ticket, waits bool, views []int, tried []string) turn {
	switch {
	case t != nil && t.on == nil:
		return turn{outcome: state.Queued}
	case t != nil:
		return turn{outcome: state.Chosen, among: []*member{r.members[t.on.addr]}, granted: true}
	}
	if len(tried) > 0 {
		for _, v := range views {
			if best := r.best(v, tried); len(best) > 0 {
				return turn{outcome: state.Chosen, view: v, among: best, elsewhere: true}
			}
			m.Choose(r.id, v, "", tried...)
		}
	}
	best, v, full := r.bestIn(views)
	if full {
		best, v, _ = r.bestIn(r.serving)
	}
	switch {
	case len(best) > 0:
		return turn{outcome: state.Chosen, view: v, among: best}
	case !full:
		return turn{outcome: state.Empty}
	case !waits || len(r.line) >= r.guards.MaxQueued:
		return turn{outcome: state.Refused}
	}
	return turn{outcome: state.Queued}
}

// enqueue gives an RPC a ticket.
func (m *Model) enqueue(r *roster, views []int) *ticket {
	if r.serving == nil {
		r.serving = views
	}
	m.arrivals++
	r.queued++
	t := &ticket{roster: r, arrival: m.arrivals}
	r.line = append(r.line, t)
	return t
}

// Serve tells an endpoint set where those that wait may find room.
func (m *Model) Serve(id int, views []int) {
	r := m.rosters[id]
	r.serving = views
	m.grant(r)
}

// leave ends a ticket; what it was granted goes on.
func (m *Model) leave(t *ticket) {
	t.roster.line = without(t.roster.line, t)
	t.roster.granted = without(t.roster.granted, t)
	if t.on != nil {
		m.settle(t.on)
	}
}

// used notes that an RPC has taken up what it was granted.
func (m *Model) used(t *ticket) { t.roster.granted = without(t.roster.granted, t) }

func without(ts []*ticket, t *ticket) []*ticket {
	return slices.DeleteFunc(ts, func(o *ticket) bool { return o == t })
}

func (m *Model) grant(r *roster) {
	for m.grantOne(r) {
	}
}

// grantOne gives room to the first in line. Where several members are equal, it
// is taken up at once, so that it is known which one it was.
func (m *Model) grantOne(r *roster) bool {
	if len(r.line) == 0 {
		return false
	}
	best, v, _ := r.bestIn(r.serving)
	if len(best) == 0 {
		return false
	}
	t := r.line[0]
	r.line = r.line[1:]
	r.granted = append(r.granted, t)
	r.woken = true
	addr := best[0].node.addr
	if among := sorted(best); len(among) > 1 {
		var err error
		if addr, err = m.takeUp(t, among); err != nil {
			m.err = cmp.Or(m.err, err)
			addr = among[0]
		}
		m.used(t)
	}
	t.on, t.start = m.nodes[addr], m.now
	m.Choose(r.id, v, addr)
	return true
}

// offer gives the room that n has to those that wait for it, by arrival.
func (m *Model) offer(n *node) {
	for again := true; again; {
		var rs []*roster
		for _, mb := range n.members {
			if mb.seated && len(mb.roster.line) > 0 {
				rs = append(rs, mb.roster)
			}
		}
		slices.SortFunc(rs, func(a, b *roster) int { return a.line[0].arrival - b.line[0].arrival })
		again = slices.ContainsFunc(rs, m.grantOne)
	}
}

// revoke takes back what was granted on mb; those RPCs wait again, at their
// places.
func (m *Model) revoke(mb *member) {
	r := mb.roster
	back := 0
	for _, t := range slices.Clone(r.granted) {
		if t.on == mb.node {
			r.granted = without(r.granted, t)
			t.on = nil
			r.line = append(r.line, t)
			back++
		}
	}
	slices.SortFunc(r.line, func(a, b *ticket) int { return a.arrival - b.arrival })
	for range back {
		m.settle(mb.node)
	}
	m.grant(r)
}
