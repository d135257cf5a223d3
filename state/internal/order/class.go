package order

import (
	"math"
	"math/rand/v2"
)

// weightClass is the values that have one weight. Its buckets are a list in
// ascending order of load, and a skip list. It lives while it has values, suspended
// or not.
type weightClass struct {
	weight  float64
	turn    float64 // virtual time of its next turn
	step    float64 // between two turns: 1 / (takers × weight)
	members int32   // values; 0 when the class is not in use
	takers  int32   // of those, the ones that take turns: all but the suspended ones
	size    int32   // of those, the ones in buckets: all but what is excluded now
	lowest  int32   // the bucket of the lowest load
	levels  []int32 // the first node on each level of the skip list
}

// span is the weight of the class's values in buckets. It is exact where the weight
// is a whole number.
func (cl *weightClass) span() float64 { return float64(cl.size) * cl.weight }

// nearWeight is how far, relative to one already there, a weight may be and
// still be taken as that one: fixed-point shares of equals differ by a unit.
const nearWeight = 1.0 / (1 << 16)

// quantum cuts a weight to sixteen bits of fraction. Weights of one quantum are
// near each other, and weights near each other are at most two quanta apart: a
// quantum is 2⁻¹⁷ to 2⁻¹⁶ of its weights.
func quantum(weight float64) uint64 { return math.Float64bits(weight) >> (52 - 16) }

// enlist makes h, which has no class, a member of the one for the weight.
func (o *Order[V]) enlist(h Handle, weight float64) int32 {
	c := o.nearClass(weight)
	if c == none {
		c = o.newClass(weight)
	}
	o.slots[h].class = c
	o.classes[c].members++
	return c
}

// delist ends h's membership. A class without members is freed.
func (o *Order[V]) delist(h Handle) {
	c := o.slots[h].class
	o.slots[h].class = none
	if o.classes[c].members--; o.classes[c].members == 0 {
		o.freeClass(c)
	} else {
		o.update(c)
	}
}

// nearClass returns the class that has the weight, or the nearest of those near it,
// or none.
func (o *Order[V]) nearClass(weight float64) int32 {
	q := quantum(weight)
	best, distance := int32(none), math.Inf(1)
	for at := q - 2; at <= q+2; at++ {
		c, ok := o.byWeight[at]
		if !ok {
			continue
		}
		w := o.classes[c].weight
		if d := math.Abs(weight - w); d <= nearWeight*w && d < distance {
			best, distance = c, d
		}
	}
	return best
}

// newClass returns a class without values, whose first turn is drawn. One that was the
// only class, and so was not in the tree, is from now on.
func (o *Order[V]) newClass(weight float64) int32 {
	if o.byWeight == nil {
		o.byWeight = map[uint64]int32{}
		o.stale = none
		o.tree.reset()
	}
	c := int32(len(o.classes))
	if last := len(o.freeClasses) - 1; last >= 0 {
		c = o.freeClasses[last]
		o.freeClasses = o.freeClasses[:last]
	} else {
		o.classes = append(o.classes, weightClass{})
	}
	o.classes[c] = weightClass{weight: weight, lowest: none, turn: o.turns.now + (1-rand.Float64())/weight}
	o.byWeight[quantum(weight)] = c
	switch len(o.byWeight) {
	case 1:
		o.only = c
	case 2:
		o.update(o.only)
	}
	return c
}

// freeClass takes the class c out, which has no values.
func (o *Order[V]) freeClass(c int32) {
	if o.tree.has(c) {
		o.tree.remove(c)
	}
	if o.stale == c {
		o.stale = none
	}
	delete(o.byWeight, quantum(o.classes[c].weight))
	o.classes[c] = weightClass{}
	o.freeClasses = append(o.freeClasses, c)
	switch len(o.byWeight) {
	case 0:
		o.turns = turns{}
	case 1:
		o.tree.reset()
		o.stale = none
		for _, o.only = range o.byWeight {
		}
	}
}

// update takes up that the loads or the turn of class c have changed. Where there is
// one class only, nobody looks at the tree.
func (o *Order[V]) update(c int32) {
	if len(o.byWeight) < 2 {
		return
	}
	if o.stale == c {
		o.stale = none
	}
	if o.classes[c].size > 0 {
		o.tree.set(c, o.key(c))
	} else if o.tree.has(c) {
		o.tree.remove(c)
	}
}

// key returns what class c is compared by. Its level counts, beside the lowest load,
// the part of its values that is above. It divides integers, as long as the weight is
// one: equal rationals must be equal floats.
func (o *Order[V]) key(c int32) classKey {
	cl := &o.classes[c]
	b := &o.buckets[cl.lowest]
	size, span := float64(cl.size), cl.span()
	load := float64(b.load)*size + float64(cl.size-b.size)
	return keyOf(load/span, (load+1)/span, cl.turn)
}

// highestAfter returns the highest load over weight with one more in class c, that of
// except aside; 0 without one.
func (o *Order[V]) highestAfter(c int32, except Handle) float64 {
	b := o.find(c, none, math.MaxInt64)
	if b != none && o.slots[except].bucket == b && o.buckets[b].size == 1 {
		b = o.buckets[b].prev
	}
	if b == none {
		return 0
	}
	return float64(o.buckets[b].load+1) / o.classes[c].weight
}
