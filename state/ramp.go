package state

import (
	"math"
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// never is the start of a ramp that is long over, or was none.
const never = time.Duration(math.MinInt64 / 2)

// StartSlowly lets the member's ramp begin anew when it is next made ready: it is
// back from a failure. Without SlowStart in the endpoint set's guards it is ready with
// its full weight.
func (m *Member) StartSlowly() {
	mu := m.set.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	m.slowStartPending = true
}

// cold reports whether an endpoint set that lists n has yet to begin its ramp.
func (n *endpoint) slowStartPending() bool {
	return slices.ContainsFunc(n.members, func(m *Member) bool { return m.slowStartPending })
}

func (m *Member) ramping() bool { return m.slowStartFactor < 1 }

// effective returns the weight that m has now.
func (m *Member) effectiveWeight() float64 { return float64(m.weight) * m.slowStartFactor }

// warm begins the ramp of a member that is new or back, and is ready now. An endpoint
// that another endpoint set begins to list later goes on with its ramp there.
func (m *Member) beginSlowStart(now time.Duration) {
	if m.slowStartPending {
		m.slowStartPending = false
		m.since, m.endpoint.since = now, now
	}
	m.ramp(now)
}

// ramp gives m the weight of its age. Caller refits its endpoint.
func (m *Member) ramp(now time.Duration) {
	l, s := m.set.ledger, m.set.guards.SlowStart
	was := m.slowStartFactor
	m.slowStartFactor = 1
	if m.readySet != nil && m.weight > 0 {
		m.slowStartFactor = s.Factor(now - m.since)
	}
	if m.ramping() {
		m.nextStep = min(now+s.step(), m.since+s.Window)
		l.ramping[m] = struct{}{}
		l.startClock()
	} else {
		delete(l.ramping, m)
	}
	if m.handle != order.None && m.slowStartFactor != was {
		m.readySet.order.SetWeight(m.handle, m.effectiveWeight())
	}
	if m.readySet != nil {
		m.readySet.waits.stale = true
	}
}

// climb lets the weights of members that ramp rise. Caller holds mu.
func (l *Ledger) advanceSlowStart() {
	for m := range l.ramping {
		if m.nextStep <= l.clock.now {
			m.ramp(l.clock.now)
			m.endpoint.updateEligibility()
		}
	}
}
