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
// It leaves none when, without it, n's score is the worst already, alone, in every
// ready set that may choose n: a penalty puts an endpoint behind the busiest one,
// never further. Where an endpoint is busy, at its cap, it always leaves one.
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

// expirePenalties ends the penalties whose time is over, of the endpoint that the ledger
// has known longest first, and gives the room that they took to RPCs that wait.
func (l *Ledger) expirePenalties() {
	var over []*endpoint
	for n := range l.penalized {
		if n.penalties[0].until <= l.clock.now {
			over = append(over, n)
		}
	}
	slices.SortFunc(over, func(a, b *endpoint) int { return cmp.Compare(a.number, b.number) })
	for _, n := range over {
		left := n.load.penalty
		for len(n.penalties) > 0 && n.penalties[0].until <= l.clock.now {
			left -= n.penalties[0].units
			n.penalties = slices.Delete(n.penalties, 0, 1)
		}
		if len(n.penalties) == 0 {
			delete(l.penalized, n)
		}
		n.setLoad(load{n.load.inFlight, left})
	}
	if len(over) > 0 && l.waiting > 0 {
		grantIn(slices.Collect(maps.Keys(l.sets))...)
	}
}
