package state

import (
	"math"
	"slices"
	"time"
)

// SlowStart lets the weight of a member that is new, or back from a failure,
// rise to its full value over a window of time.
type SlowStart struct {
	Window           time.Duration // 0: off
	MinWeightPercent float64       // of the weight, at the start: above 0, at most 100
	Aggression       float64       // above 0; 1 is linear, more rises earlier
}

// leastFactor bounds a factor from below, so that scores and the picks between two
// of an empty member stay numbers that can be counted with.
const leastFactor = 1e-6

// Factor returns the part of its weight that a member has at an age, by Envoy's
// definition (docs, "Slow start mode"):
// max(MinWeightPercent/100, (max(age, 1 s) / Window)^(1/Aggression)), at most 1
// and at least a millionth.
func (s SlowStart) Factor(age time.Duration) float64 {
	if age >= s.Window {
		return 1
	}
	passed := max(age, time.Second).Seconds() / s.Window.Seconds()
	return min(1, max(leastFactor, s.MinWeightPercent/100, math.Pow(passed, 1/s.Aggression)))
}

// step is the time between two changes of a factor.
func (s SlowStart) step() time.Duration { return max(Tick, s.Window/256) }

// never is the start of a slow start that is long over, or was none.
const never = time.Duration(math.MinInt64 / 2)

// memberSlowStart is a member's slow start.
type memberSlowStart struct {
	pending  bool // it begins when the member is ready
	start    time.Duration
	factor   float64       // of the weight: below 1 while it ramps
	nextStep time.Duration // when the factor is to rise
}

func (m *Member) ramping() bool { return m.slowStart.factor < 1 }

// StartSlowly lets the member's slow start begin anew when it is next made ready: it
// is back from a failure. Without SlowStart in the endpoint set's guards it is ready
// with its full weight.
func (m *Member) StartSlowly() {
	mu := m.set.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	m.slowStart.pending = true
}

// slowStartPending reports whether an endpoint set that lists n has yet to begin its
// slow start.
func (n *endpoint) slowStartPending() bool {
	return slices.ContainsFunc(n.members, func(m *Member) bool { return m.slowStart.pending })
}

// beginSlowStart begins the slow start of a member that is new or back, and is ready
// now. An endpoint that another endpoint set begins to list later goes on with it
// there.
func (m *Member) beginSlowStart(now time.Duration) {
	if m.slowStart.pending {
		m.slowStart.pending = false
		m.slowStart.start, m.endpoint.rampStart = now, now
	}
	m.slowStart.nextStep = now
}

// updateSlowStart gives m the factor of its age, if that is due. The factor of a
// member that takes no RPCs is 1.
func (m *Member) updateSlowStart(now time.Duration) {
	s, l, guard := &m.slowStart, m.set.ledger, m.set.guards.SlowStart
	was := s.factor
	if m.eligible() == nil {
		s.factor = 1
	} else if s.nextStep <= now {
		s.factor = guard.Factor(now - s.start)
		s.nextStep = min(now+guard.step(), s.start+guard.Window)
	}
	if m.ramping() {
		l.ramping[m] = struct{}{}
		l.startClock()
	} else if was < 1 {
		delete(l.ramping, m)
	}
	if m.eligibleIn != nil && s.factor != was {
		m.eligibleIn.minShare.stale = true
	}
}

// advanceSlowStarts lets the factors rise that are to.
func (l *Ledger) advanceSlowStarts() {
	for m := range l.ramping {
		if m.slowStart.nextStep <= l.clock.now {
			m.changed()
		}
	}
}
