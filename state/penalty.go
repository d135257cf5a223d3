package state

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// fine is units of a node's penalty that end together.
type fine struct {
	until time.Duration // by the ledger's clock
	units int64
}

// punish leaves the unit of an attempt that failed, and is not counted on n any
// more, as a penalty until a point of time, and reports whether it did. Caller
// holds mu.
//
// It leaves none when, without it, n's score is beyond that of all others
// already, in every view that may choose n: a penalty puts a node behind the
// busiest one, never further.
func (l *Ledger) punish(n *node, until time.Duration) bool {
	if l.clock.read() >= until || n.beyond() {
		return false
	}
	until = (until + Tick - 1).Truncate(Tick)
	i, found := slices.BinarySearchFunc(n.fines, until, func(f fine, t time.Duration) int { return cmp.Compare(f.until, t) })
	if !found {
		n.fines = slices.Insert(n.fines, i, fine{until: until})
	}
	n.fines[i].units++
	n.penalty++
	n.shift()
	l.fined[n] = struct{}{}
	l.wind()
	return true
}

// forgive ends the penalties whose time is over. Caller holds mu.
func (l *Ledger) forgive() {
	for n := range l.fined {
		over := 0
		for over < len(n.fines) && n.fines[over].until <= l.clock.now {
			n.penalty -= n.fines[over].units
			over++
		}
		if over == 0 {
			continue
		}
		n.fines = slices.Delete(n.fines, 0, over)
		if len(n.fines) == 0 {
			delete(l.fined, n)
		}
		n.shift()
	}
}

// beyond reports whether n has the highest score of all, alone, in every view
// that may choose it. A node that no view may choose is not.
func (n *node) beyond() bool {
	for _, p := range n.places {
		if !p.order.beyond(p.seat) {
			return false
		}
	}
	return len(n.places) > 0
}

// beyond reports whether the member on seat i has a higher score than any other.
// It costs O(log n) for each class of weights.
func (o *order) beyond(i int32) bool {
	own := &o.buckets[o.seats[i].bucket]
	score := float64(own.load+1) / o.classes[own.class].weight
	for c := range o.classes {
		if o.classes[c].size > 0 && o.highest(int32(c), i) >= score {
			return false
		}
	}
	return true
}

// highest returns the highest score in class c, seat but apart; 0 without one.
func (o *order) highest(c, but int32) float64 {
	b := o.find(c, none, math.MaxInt64)
	if o.seats[but].bucket == b && o.buckets[b].size == 1 {
		b = o.buckets[b].prev
	}
	if b == none {
		return 0
	}
	return float64(o.buckets[b].load+1) / o.classes[c].weight
}
