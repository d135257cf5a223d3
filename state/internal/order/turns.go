package order

import (
	"math"
	"math/rand/v2"
)

// turns is by what the classes take turns where counts leave the choice open: stride
// scheduling (C. A. Waldspurger and W. E. Weihl, 1995). A class's turn comes each time
// that virtual time has gone on by one over the weight of its values. Only the
// order's own choices move a turn.
type turns struct {
	now    float64 // virtual time
	load   int64   // of all values
	weight Sum     // of all values
	drawn  bool    // one has been chosen among classes since there were none
}

// fineness is the least part of virtual time that a class's step may be.
const fineness = 1.0 / (1 << 36)

// leastPhase is the phase of a class whose turn is overdue: a score is above 0.
const leastPhase = 1.0 / 1024

// Sum is a sum of floats that does not drift, however many come and go: what the
// first float rounds away is kept in the second (D. Knuth, The Art of Computer
// Programming 2, 4.2.2).
type Sum struct{ high, low float64 }

// Add adds x, which may be below 0.
func (s *Sum) Add(x float64) {
	sum := s.high + x
	part := sum - s.high
	s.low += (s.high - (sum - part)) + (x - part)
	s.high = sum
}

// Value returns the sum.
func (s Sum) Value() float64 { return s.high + s.low }

// chooseClass returns the class whose head is next. A level below limit is one at which
// nobody gets above its weighted share of the load, nor above what the least loaded
// one would have with one more.
func (o *Order[V]) chooseClass() int32 {
	limit := min(o.tree.leastAfter(), math.Float64bits(float64(o.turns.load+1)/o.turns.weight.Value()))
	if c := o.tree.next(limit); c != none {
		return c
	}
	return o.tree.next(never) // where rounding has left nobody below
}

// drawClass is chooseClass by chance, in proportion to the weights: the turn of whoever
// is drawn is now. It costs O(k).
func (o *Order[V]) drawClass() int32 {
	limit := min(o.tree.leastAfter(), math.Float64bits(float64(o.turns.load+1)/o.turns.weight.Value()))
	drawn, sum := int32(none), 0.0
	for _, c := range o.byWeight {
		cl := &o.classes[c]
		if cl.size == 0 || o.key(c).level >= limit {
			continue
		}
		if sum += cl.span(); rand.Float64()*sum < cl.span() {
			drawn = c
		}
	}
	if drawn == none {
		return o.chooseClass()
	}
	return drawn
}

// charge moves class c, which is chosen, to its next turn. A choice that was forced
// does not move time: those that could not be chosen are not overdue by it.
func (o *Order[V]) charge(c int32, forced bool) {
	cl := &o.classes[c]
	from := max(o.turns.now, cl.turn)
	if !forced {
		if !o.turns.drawn {
			from = o.turns.now
		}
		o.turns.now, o.turns.drawn = from, true
	}
	if cl.step < from*fineness {
		from = o.rebase(from)
	}
	cl.turn = from + cl.step
	o.stale = c // until its load has changed, most often at once
}

// rebase lets virtual time begin anew before it is too large for steps to count, and
// returns what a point of time becomes.
func (o *Order[V]) rebase(at float64) float64 {
	base := o.turns.now
	o.turns.now = 0
	for _, c := range o.byWeight {
		o.classes[c].turn = max(0, o.classes[c].turn-base)
		o.update(c)
	}
	return at - base
}

// resize tells class c that by more of its values, or fewer, take turns: its turn comes
// earlier or later in proportion. One of which all are back has not waited for longer
// than a step.
func (o *Order[V]) resize(c, by int32) {
	cl := &o.classes[c]
	was := cl.takers
	cl.takers += by
	if cl.takers == 0 {
		return
	}
	cl.step = 1 / (float64(cl.takers) * cl.weight)
	if wait := max(0, cl.turn-o.turns.now); was == 0 {
		cl.turn = o.turns.now + min(wait, cl.step)
	} else {
		cl.turn = o.turns.now + wait*float64(was)/float64(cl.takers)
	}
}

// Score returns (load + phase) / weight of h, which must not be suspended. The phase,
// above 0, is how much of the way to its class's next turn is left; 1 where all have
// one weight.
func (o *Order[V]) Score(h Handle) float64 {
	b := &o.buckets[o.slots[h].bucket]
	cl := &o.classes[b.class]
	phase := 1.0
	if len(o.byWeight) > 1 {
		phase = max(leastPhase, (cl.turn-o.turns.now)/cl.step)
	}
	return (float64(b.load) + phase) / cl.weight
}
