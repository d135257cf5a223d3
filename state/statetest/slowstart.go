package statetest

import (
	"math"
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// StartSlowly lets a slow start begin anew when the address is next made ready.
func (m *model) StartSlowly(id int, addr string) { m.sets[id].members[addr].slowStartPending = true }

// Guard sets an endpoint set's guards.
func (m *model) Guard(id int, g state.Guards) {
	r := m.sets[id]
	r.guards = g
	m.advanceAll(r.those(func(mb *member) bool { return mb.readySet != none }))
}

// Tick lets one tick of time pass.
func (m *model) Tick() {
	defer m.settle()
	m.now += state.Tick
	m.expirePenalties()
	m.expireWaits()
	for _, r := range m.sets {
		m.advanceAll(r.those(func(mb *member) bool { return mb.factor < 1 && mb.nextStep <= m.now }))
	}
	for _, res := range m.overdue(m.now) {
		m.endReservation(res)
	}
	m.takeUpCosts()
}

// advanceAll advances slow starts, in an order that is chance.
func (m *model) advanceAll(ms []*member) {
	for _, mb := range ms {
		mb.seats[withRoom].before = mb.seats[withRoom].class
	}
	var moved []*member
	for _, mb := range ms {
		if mb.advance(m.now) {
			moved = append(moved, mb)
			mb.reweigh()
		}
		mb.updateEligibility()
	}
	for _, mb := range moved {
		mb.seats[withRoom].either = slices.ContainsFunc(moved, mb.mixes)
		if slices.ContainsFunc(moved, func(o *member) bool { return o != mb && o.set == mb.set && o.readySet == mb.readySet }) {
			for kind := range kinds {
				mb.order(kind).forget()
			}
			m.unsure = true
		}
	}
}

// mixes reports whether it is chance which of mb and o, which have both moved,
// the other is taken as.
func (mb *member) mixes(o *member) bool {
	near := func(w float64) bool {
		d := math.Abs(w - mb.effective())
		return d > 0 && d < w/(1<<15)
	}
	return o != mb && o.readySet == mb.readySet && (near(o.effective()) || near(o.seats[withRoom].before))
}

// advance gives mb the factor of its age and reports whether that is another one.
func (mb *member) advance(now time.Duration) bool {
	s := mb.set.guards.SlowStart
	was := mb.factor
	mb.factor = 1
	if mb.eligible() {
		mb.factor = slowStartFactor(s, now-mb.since)
	}
	if mb.factor < 1 {
		mb.nextStep = min(now+max(state.Tick, s.Window/256), mb.since+s.Window)
	}
	return mb.seats[withRoom].placed && mb.factor != was
}

// forget takes all waits as chance's.
func (v *order) forget() {
	for class := range v.waits {
		v.waits[class] = wait{}
	}
}

// slowStartFactor is Envoy's formula.
func slowStartFactor(s state.SlowStart, age time.Duration) float64 {
	if age >= s.Window {
		return 1
	}
	if age < time.Second {
		age = time.Second
	}
	passed := age.Seconds() / s.Window.Seconds()
	return math.Min(1, math.Max(s.MinWeightPercent/100, math.Pow(passed, 1/s.Aggression)))
}
