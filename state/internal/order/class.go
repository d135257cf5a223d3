package order

import "math"

// weightClass is the values that have one weight. Its buckets are a list in
// ascending order of load, and a skip list.
type weightClass struct {
	weight float64
	size   int     // values; 0 when the class is not in use
	lowest int32   // the bucket of the lowest load
	levels []int32 // the first bucket on each level of the skip list
}

// nearWeight is how far, relative to one already there, a weight may be and
// still be taken as that one: fixed-point shares of equals differ by a unit.
const nearWeight = 1.0 / (1 << 16)

// quantum cuts a weight to sixteen bits of fraction. Weights of one quantum are
// near each other, and weights near each other are at most two quanta apart: a
// quantum is 2⁻¹⁷ to 2⁻¹⁶ of its weights.
func quantum(weight float64) uint64 { return math.Float64bits(weight) >> (52 - 16) }

// bucketFor returns the class and the bucket for one value more, which it counts
// in the class.
func (o *Order[V]) bucketFor(weight float64, load int64) (c, b int32) {
	c = o.classFor(weight)
	o.classes[c].size++
	b = o.find(c, none, load)
	if b == none || o.buckets[b].load != load {
		b = o.newBucket(c, b, load)
	}
	return c, b
}

// classFor returns the class that has the weight, or the nearest of those near
// it, or a new one.
func (o *Order[V]) classFor(weight float64) int32 {
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
	if best != none {
		return best
	}
	return o.newClass(weight)
}

// newClass returns a class without values. One that was the only class, and so was
// not kept up to date in the tree, is from now on.
func (o *Order[V]) newClass(weight float64) int32 {
	if o.byWeight == nil {
		o.byWeight = map[uint64]int32{}
	}
	if o.tree.size == 1 {
		o.tree.set(o.tree.best, o.key(o.tree.best))
	}
	c := int32(len(o.classes))
	if last := len(o.freeClasses) - 1; last >= 0 {
		c = o.freeClasses[last]
		o.freeClasses = o.freeClasses[:last]
	} else {
		o.classes = append(o.classes, weightClass{})
	}
	o.classes[c] = weightClass{weight: weight, lowest: none}
	o.byWeight[quantum(weight)] = c
	o.tree.add(c)
	return c
}

// freeClass takes the empty class c out.
func (o *Order[V]) freeClass(c int32) {
	o.tree.remove(c)
	delete(o.byWeight, quantum(o.classes[c].weight))
	o.classes[c] = weightClass{}
	o.freeClasses = append(o.freeClasses, c)
}

// highestScore returns the highest score in class c, that of except aside; 0
// without one.
func (o *Order[V]) highestScore(c int32, except Handle) float64 {
	b := o.find(c, none, math.MaxInt64)
	if o.slots[except].bucket == b && o.buckets[b].size == 1 {
		b = o.buckets[b].prev
	}
	if b == none {
		return 0
	}
	return o.buckets[b].score(o.classes[c].weight)
}
