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

// rampsPerTick is how many factors change in a tick, on average, before they change
// less often. It keeps the clock's share of a core at a few percent.
const rampsPerTick = 500

// step is the time between two changes of a factor: a 256th of the window, and with
// very many members that start slowly up to a 25th.
func (l *Ledger) step(s SlowStart) time.Duration {
	pace := time.Duration(l.ramps/rampsPerTick) * Tick
	return max(Tick, s.Window/256, min(pace, s.Window/25))
}

// never is the start of a slow start that is long over, or was none.
const never = time.Duration(math.MinInt64 / 2)

// memberSlowStart is a member's slow start.
type memberSlowStart struct {
	pending  bool // it begins when the member is ready
	start    time.Duration
	factor   float64       // of the weight: below 1 while it ramps
	nextStep time.Duration // when the factor is to rise
	ramp     int           // its index in the endpoint set's ramps, or noRamp
}

// ramp is a member that starts slowly. All of an endpoint set lie close together: a tick
// looks at members only whose factors are to rise.
type ramp struct {
	member   *Member
	nextStep time.Duration
}

const noRamp = -1

// rampsPerUnit is how many ramps a unit of work looks at.
const rampsPerUnit = 16

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

// StartWarm lets the endpoint set's first list not start slowly: its balancer has used the
// endpoints under another resource key.
func (r *EndpointSet) StartWarm() {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	r.warm = true
}

// startsSlowly reports whether endpoints that join r are newcomers: those of a list after the
// first, and of a first one where others of the ledger are in use. When all begin together,
// none is colder than another.
func (r *EndpointSet) startsSlowly() bool {
	if r.listed {
		return true
	}
	return !r.warm && r.guards.SlowStart.Window > 0 && r.ledger.inUse()
}

// inUse reports whether RPCs are in flight, or an endpoint may be chosen.
func (l *Ledger) inUse() bool {
	if l.leases > 0 {
		return true
	}
	for r := range l.sets {
		if slices.ContainsFunc(r.readySets, func(v *ReadySet) bool { return v.eligible > 0 }) {
			return true
		}
	}
	return false
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
	s, guard := &m.slowStart, m.set.guards.SlowStart
	if m.eligible() == nil {
		s.factor = 1
	} else if s.nextStep <= now {
		s.factor = guard.Factor(now - s.start)
		m.endpoint.summary.known = false
		s.nextStep = min(now+m.set.ledger.step(guard), s.start+guard.Window)
	}
	if m.ramping() {
		m.addRamp()
	} else if s.ramp != noRamp {
		m.removeRamp()
	}
}

// addRamp lets the clock look after m, or tells it of m's next step.
func (m *Member) addRamp() {
	s, r := &m.slowStart, m.set
	if s.ramp == noRamp {
		s.ramp = len(r.ramps)
		r.ramps = append(r.ramps, ramp{member: m})
		r.ledger.ramping[r] = struct{}{}
		r.ledger.ramps++
	}
	r.ramps[s.ramp].nextStep = s.nextStep
	r.ledger.startClock()
}

func (m *Member) removeRamp() {
	r, i, last := m.set, m.slowStart.ramp, len(m.set.ramps)-1
	r.ramps[i] = r.ramps[last]
	r.ramps[i].member.slowStart.ramp = i
	r.ramps[last] = ramp{}
	r.ramps = r.ramps[:last]
	m.slowStart.ramp = noRamp
	r.ledger.ramps--
	if last == 0 {
		r.ramps = nil
		delete(r.ledger.ramping, r)
	}
}

// advanceSlowStarts lets the factors rise that are to, step by step. It goes through
// one endpoint set after the other: a member's order is still in the cache from the one
// before.
func (l *Ledger) advanceSlowStarts() {
	steps := l.inSteps()
	for r := range l.ramping {
		for i := len(r.ramps) - 1; i >= 0; i = min(i, len(r.ramps)) - 1 {
			if r.ramps[i].nextStep > l.clock.now {
				if i%rampsPerUnit == 0 {
					steps.did(unitLook)
				}
				continue
			}
			m := r.ramps[i].member
			m.updateSlowStart(l.clock.now)
			m.updateEligibility()
			m.endpoint.watch(m)
			steps.did(unitChange)
		}
	}
}
