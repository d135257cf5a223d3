package state

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// penalty is units of an endpoint's load that end together.
type penalty struct {
	until time.Duration // by the ledger's clock
	units int64
}

// addPenalty leaves the unit of an attempt that failed, and is not counted on n any
// more, as a penalty until a point of time. It reports whether it did.
//
// It leaves none when n, without it, comes last already in every ready set that may
// choose n: a penalty puts an endpoint behind the busiest one, never further. Where an
// endpoint is busy, at its cap, it always leaves one.
func (l *Ledger) addPenalty(n *endpoint, until time.Duration) bool {
	if l.clock.read() >= until || n.isWorst() {
		return false
	}
	until = (until + Tick - 1).Truncate(Tick)
	i, found := slices.BinarySearchFunc(n.penalties, until, func(p penalty, t time.Duration) int {
		return cmp.Compare(p.until, t)
	})
	if !found {
		n.penalties = slices.Insert(n.penalties, i, penalty{until: until})
	}
	n.penalties[i].units++
	n.setLoad(load{n.load.inFlight, n.load.penalty + 1})
	l.penalized[n] = struct{}{}
	l.startClock()
	return true
}

// expirePenalties ends the penalties whose time is over, step by step, and gives the room
// that they took to RPCs that wait: at the end, or when others are let in between.
func (l *Ledger) expirePenalties() {
	steps := l.inSteps()
	room := false
	grant := func() {
		if room && l.waiting > 0 {
			grantIn(slices.Collect(maps.Keys(l.sets))...)
		}
		room = false
	}
	steps.settle = grant
	for n := range l.penalized {
		over, left := 0, n.load.penalty
		for over < len(n.penalties) && n.penalties[over].until <= l.clock.now {
			left -= n.penalties[over].units
			over++
		}
		if over == 0 {
			steps.did(unitLook)
			continue
		}
		n.penalties = slices.Delete(n.penalties, 0, over)
		if len(n.penalties) == 0 {
			delete(l.penalized, n)
		}
		n.setLoad(load{n.load.inFlight, left})
		room = true
		steps.did(unitChange * (1 + len(n.places)))
	}
	grant()
}
