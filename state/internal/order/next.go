package order

import "math"

// Next returns the handle to choose now, None when there is none, and takes it as
// chosen: its class has had a turn. Its load is the caller's to change. forced says
// that the choice is among a part of the values only, or that it is not the order's
// own.
func (o *Order[V]) Next(forced bool) Handle {
	if o.placed == 0 {
		return None
	}
	c := o.only
	if len(o.byWeight) > 1 {
		o.refresh()
		if o.turns.drawn || forced {
			c = o.chooseClass()
		} else {
			c = o.drawClass()
		}
		o.charge(c, forced)
	}
	return o.head(c)
}

// Peek returns a handle that Next(false) may return, None when there is none, and takes
// nothing as chosen. Before the first choice among its classes chance decides which.
func (o *Order[V]) Peek() Handle {
	if o.placed == 0 {
		return None
	}
	c := o.only
	if len(o.byWeight) > 1 {
		o.refresh()
		if o.turns.drawn {
			c = o.chooseClass()
		} else {
			c = o.drawClass()
		}
	}
	return o.head(c)
}

// Take takes h as chosen: its class has had a turn. forced is Next's; without it, h is
// what Peek has returned just now.
func (o *Order[V]) Take(h Handle, forced bool) {
	if len(o.byWeight) > 1 {
		o.refresh()
		o.charge(o.slots[h].class, forced)
	}
}

// Standing returns what h stands by, and whether it may be chosen: it may be suspended.
func (o *Order[V]) Standing(h Handle) (load int64, weight float64, ok bool) {
	s := &o.slots[h]
	if s.bucket == none {
		return 0, 0, false
	}
	b := &o.buckets[s.bucket]
	return b.load, o.classes[b.class].weight, true
}

// Load returns the sum of the loads of the values that may be chosen.
func (o *Order[V]) Load() int64 { return o.turns.load }

// First returns the handle that Next would return, None when the order is empty or
// the first choice among its classes is yet to be drawn.
func (o *Order[V]) First() Handle {
	c := o.only
	if len(o.byWeight) > 1 && o.placed > 0 {
		if !o.turns.drawn {
			return None
		}
		o.refresh()
		c = o.chooseClass()
	}
	if o.placed == 0 {
		return None
	}
	return o.head(c)
}

// fewClasses is how many classes LeastAfter looks at one by one.
const fewClasses = 64

// LeastAfter returns the least load over weight that a value would have with one more,
// beyond all when there is none. Among more than a few classes it may be less, where one
// has several values.
func (o *Order[V]) LeastAfter() float64 {
	least := math.Inf(1)
	if len(o.classes) > fewClasses && len(o.byWeight) > 1 && o.placed > 0 {
		o.refresh()
		return math.Float64frombits(o.tree.leastAfter())
	}
	for _, c := range o.byWeight {
		if cl := &o.classes[c]; cl.size > 0 {
			least = min(least, float64(o.buckets[cl.lowest].load+1)/cl.weight)
		}
	}
	return least
}

// refresh tells the tree the turn that it does not know yet.
func (o *Order[V]) refresh() {
	if o.stale != none {
		o.update(o.stale)
	}
}

// head returns the handle of class c that is to be chosen next.
func (o *Order[V]) head(c int32) Handle { return o.buckets[o.classes[c].lowest].head }
