package state

import (
	"math"
	"slices"
	"time"
)

// never is the start of a ramp that is long over, or was none.
const never = time.Duration(math.MinInt64 / 2)

// StartSlowly lets the member's ramp begin anew when it is next made ready: it is
// back from a failure. Without SlowStart in the roster's guards it is ready with
// its full weight.
func (m *Member) StartSlowly() {
	mu := m.roster.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	m.cold = true
}

// cold reports whether a roster that lists n has yet to begin its ramp.
func (n *node) cold() bool {
	return slices.ContainsFunc(n.members, func(m *Member) bool { return m.cold })
}

func (m *Member) ramping() bool { return m.share < 1 }

// effective returns the weight that m has now.
func (m *Member) effective() float64 { return float64(m.weight) * m.share }

// warm begins the ramp of a member that is new or back, and is ready now. A node
// that another roster begins to list later goes on with its ramp there.
func (m *Member) warm(now time.Duration) {
	if m.cold {
		m.cold = false
		m.since, m.node.since = now, now
	}
	m.ramp(now)
}

// ramp gives m the weight of its age. Caller refits its node.
func (m *Member) ramp(now time.Duration) {
	l, s := m.roster.ledger, m.roster.guards.SlowStart
	was := m.share
	m.share = 1
	if m.view != nil && m.weight > 0 {
		m.share = s.Factor(now - m.since)
	}
	if m.ramping() {
		m.climbs = min(now+s.step(), m.since+s.Window)
		l.ramping[m] = struct{}{}
		l.wind()
	} else {
		delete(l.ramping, m)
	}
	if m.seat != none && m.share != was {
		m.view.order.reweigh(m, m.effective())
	}
	if m.view != nil {
		m.view.waits.stale = true
	}
}

// climb lets the weights of members that ramp rise. Caller holds mu.
func (l *Ledger) climb() {
	for m := range l.ramping {
		if m.climbs <= l.clock.now {
			m.ramp(l.clock.now)
			m.node.refit()
		}
	}
}

// reweigh gives m, which has a seat, another weight. It keeps its turn.
func (o *order) reweigh(m *Member, weight float64) {
	old := o.seats[m.seat]
	o.remove(m)
	c, b := o.sit(m, weight, old.value)
	at := o.buckets[b].head
	for at != none && o.seats[at].stamp <= old.stamp {
		at = o.seats[at].next
	}
	if at == none {
		o.push(m.seat, b)
	} else {
		o.pushBefore(m.seat, at)
	}
	o.seats[m.seat].stamp = old.stamp
	o.seated(c)
}
