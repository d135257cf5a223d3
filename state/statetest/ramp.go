package statetest

import (
	"math"
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// StartSlowly lets a ramp begin anew when the address is next made ready.
func (m *Model) StartSlowly(id int, addr string) { m.rosters[id].members[addr].cold = true }

// Guard sets an endpoint set's guards.
func (m *Model) Guard(id int, g state.Guards) {
	r := m.rosters[id]
	r.guards = g
	m.rampAll(r.those(func(mb *member) bool { return mb.view != none }))
}

// Tick lets one tick of time pass.
func (m *Model) Tick() {
	m.now += state.Tick
	m.forgive()
	for _, r := range m.rosters {
		m.rampAll(r.those(func(mb *member) bool { return mb.share < 1 && mb.climbs <= m.now }))
	}
}

// rampAll ramps members, in an order that is chance.
func (m *Model) rampAll(ms []*member) {
	for _, mb := range ms {
		mb.before = mb.taken
	}
	var moved []*member
	for _, mb := range ms {
		if mb.ramp(m.now) {
			moved = append(moved, mb)
		}
		mb.fit()
	}
	for _, mb := range moved {
		mb.either = slices.ContainsFunc(moved, mb.mixes)
		m.unsure = m.unsure || mb.either
	}
}

// mixes reports whether it is chance which of mb and o, which have both moved,
// the other is taken as.
func (mb *member) mixes(o *member) bool {
	near := func(w float64) bool {
		d := math.Abs(w - mb.effective())
		return d > 0 && d < w/(1<<15)
	}
	return o != mb && o.view == mb.view && (near(o.effective()) || near(o.before))
}

// ramp gives mb the weight of its age; it reports whether that is another one.
func (mb *member) ramp(now time.Duration) bool {
	s := mb.roster.guards.SlowStart
	was := mb.share
	mb.share = 1
	if mb.takes() {
		mb.share = share(s, now-mb.since)
	}
	if mb.share < 1 {
		mb.climbs = min(now+max(state.Tick, s.Window/256), mb.since+s.Window)
	}
	if !mb.seated || mb.share == was {
		return false
	}
	mb.sit(mb.effective())
	return true
}

// share is Envoy's formula.
func share(s state.SlowStart, age time.Duration) float64 {
	if age >= s.Window {
		return 1
	}
	if age < time.Second {
		age = time.Second
	}
	passed := age.Seconds() / s.Window.Seconds()
	return math.Min(1, math.Max(s.MinWeightPercent/100, math.Pow(passed, 1/s.Aggression)))
}
