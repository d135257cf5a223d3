package state

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// maxLanes bounds the express lanes: with one bucket in four on the next lane,
// enough for 4^12 different loads.
const maxLanes = 12

// class is the members of an order that have one weight, by load: a list of
// buckets in ascending order of load. A load that changes by one finds its
// bucket next door; one that jumps finds it over the express lanes, which make
// the list a skip list (W. Pugh, 1990): O(log n) expected.
type class struct {
	weight float64
	size   int     // members; 0 when the class is not in use
	low    int32   // the bucket of the lowest load
	lanes  []int32 // the first bucket of each
}

// nearWeight is how far, relative to one already there, a weight may be and
// still be taken as that one: fixed-point shares of equals differ by a unit.
const nearWeight = 1.0 / (1 << 16)

// quantum cuts a weight to sixteen bits of fraction. Weights of one quantum are
// near each other, and weights near each other are at most two quanta apart: a
// quantum is 2⁻¹⁷ to 2⁻¹⁶ of its weights.
func quantum(weight float64) uint64 { return math.Float64bits(weight) >> (52 - 16) }

// classOf returns the class that has the weight, or the nearest of those near
// it, or a new one.
func (o *order) classOf(weight float64) int32 {
	q := quantum(weight)
	best, distance := none, math.Inf(1)
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
	if o.byWeight == nil {
		o.byWeight = map[uint64]int32{}
	}
	c := int32(len(o.classes))
	if last := len(o.freeClasses) - 1; last >= 0 {
		c = o.freeClasses[last]
		o.freeClasses = o.freeClasses[:last]
	} else {
		o.classes = append(o.classes, class{})
	}
	o.classes[c] = class{weight: weight, low: none}
	o.byWeight[q] = c
	return c
}

// freeClass takes the empty class c out.
func (o *order) freeClass(c int32) {
	delete(o.byWeight, quantum(o.classes[c].weight))
	o.classes[c] = class{}
	o.freeClasses = append(o.freeClasses, c)
}

// find returns the bucket of class c with the highest load that is not above
// load, none when all are above it. at is a bucket from which the search may be
// short.
func (o *order) find(c, at int32, load int64) int32 {
	if at != none {
		b := &o.buckets[at]
		if b.load < load && (b.next == none || o.buckets[b.next].load >= load) {
			if b.next != none && o.buckets[b.next].load == load {
				return b.next
			}
			return at
		}
		if b.load > load && (b.prev == none || o.buckets[b.prev].load <= load) {
			return b.prev
		}
	}
	at = none
	for i := len(o.classes[c].lanes) - 1; i >= 0; i-- {
		at = o.follow(c, at, i, load)
	}
	next := o.classes[c].low
	if at != none {
		next = o.buckets[at].next
	}
	for next != none && o.buckets[next].load <= load {
		at, next = next, o.buckets[next].next
	}
	return at
}

// follow goes along lane i of class c from at, or from its start, as far as
// loads are not above load.
func (o *order) follow(c, at int32, i int, load int64) int32 {
	next := o.classes[c].lanes[i]
	if at != none {
		next = o.buckets[at].express[i].next
	}
	for next != none && o.buckets[next].load <= load {
		at, next = next, o.buckets[next].express[i].next
	}
	return at
}

// newBucket inserts a bucket for load into class c after bucket prev, or first.
func (o *order) newBucket(c, prev int32, load int64) int32 {
	i := o.spare
	if i == none {
		i = int32(len(o.buckets))
		lanes := bits.TrailingZeros32(rand.Uint32()|1<<(2*maxLanes)) / 2
		o.buckets = append(o.buckets, bucket{next: none, express: make([]lane, lanes)})
	}
	b := &o.buckets[i]
	o.spare = b.next
	b.load, b.class, b.size, b.head, b.tail, b.prev = load, c, 0, none, none, prev
	if prev == none {
		b.next, o.classes[c].low = o.classes[c].low, i
	} else {
		b.next, o.buckets[prev].next = o.buckets[prev].next, i
	}
	if b.next != none {
		o.buckets[b.next].prev = i
	}
	if len(b.express) > 0 {
		o.enterLanes(c, i)
	}
	return i
}

// enterLanes puts bucket i onto its express lanes.
func (o *order) enterLanes(c, i int32) {
	b, cl := &o.buckets[i], &o.classes[c]
	for len(cl.lanes) < len(b.express) {
		cl.lanes = append(cl.lanes, none)
	}
	at := none
	for k := len(cl.lanes) - 1; k >= 0; k-- {
		at = o.follow(c, at, k, b.load)
		if k >= len(b.express) {
			continue
		}
		next := &cl.lanes[k]
		if at != none {
			next = &o.buckets[at].express[k].next
		}
		b.express[k] = lane{prev: at, next: *next}
		if *next != none {
			o.buckets[*next].express[k].prev = i
		}
		*next = i
	}
}

// freeBucket takes the empty bucket i out of its class.
func (o *order) freeBucket(i int32) {
	b := &o.buckets[i]
	if b.prev == none {
		o.classes[b.class].low = b.next
	} else {
		o.buckets[b.prev].next = b.next
	}
	if b.next != none {
		o.buckets[b.next].prev = b.prev
	}
	for k, l := range b.express {
		if l.prev == none {
			o.classes[b.class].lanes[k] = l.next
		} else {
			o.buckets[l.prev].express[k].next = l.next
		}
		if l.next != none {
			o.buckets[l.next].express[k].prev = l.prev
		}
	}
	b.class, b.next, o.spare = none, o.spare, i
}
