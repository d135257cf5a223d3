package state

import (
	"cmp"
	"slices"
	"time"
)

// fine is units of an endpoint's penalty that end together.
type penalty struct {
	until time.Duration // by the ledger's clock
	units int64
}

// punish leaves the unit of an attempt that failed, and is not counted on n any
// more, as a penalty until a point of time, and reports whether it did. Caller
// holds mu.
//
// It leaves none when, without it, n's score is beyond that of all others
// already, in every ready set that may choose n: a penalty puts an endpoint behind the
// busiest one, never further.
func (l *Ledger) addPenalty(n *endpoint, until time.Duration) bool {
	if l.clock.read() >= until || n.isWorst() {
		return false
	}
	until = (until + Tick - 1).Truncate(Tick)
	i, found := slices.BinarySearchFunc(n.penalties, until, func(f penalty, t time.Duration) int { return cmp.Compare(f.until, t) })
	if !found {
		n.penalties = slices.Insert(n.penalties, i, penalty{until: until})
	}
	n.penalties[i].units++
	n.penalty++
	n.shift()
	l.penalized[n] = struct{}{}
	l.startClock()
	return true
}

// forgive ends the penalties whose time is over. Caller holds mu.
func (l *Ledger) expirePenalties() {
	for n := range l.penalized {
		over := 0
		for over < len(n.penalties) && n.penalties[over].until <= l.clock.now {
			n.penalty -= n.penalties[over].units
			over++
		}
		if over == 0 {
			continue
		}
		n.penalties = slices.Delete(n.penalties, 0, over)
		if len(n.penalties) == 0 {
			delete(l.penalized, n)
		}
		n.shift()
	}
}

// beyond reports whether n has the highest score of all, alone, in every ready set
// that may choose it. An endpoint that no ready set may choose is not.
func (n *endpoint) isWorst() bool {
	for _, p := range n.places {
		if !p.order.IsWorst(p.handle) {
			return false
		}
	}
	return len(n.places) > 0
}
