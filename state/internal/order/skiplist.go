package order

import (
	"math/bits"
	"math/rand/v2"
)

// maxLevels bounds the levels of a class's skip list (W. Pugh, 1990). One bucket
// in four is on the next level: enough for 4^12 different loads. A load that
// changes by one finds its bucket next door; one that changes by more finds it
// over the levels, in O(log n) steps expected.
const maxLevels = 12

// skipNode is a bucket on one level of its class's skip list. It has the bucket's load, so
// that a search looks at nodes only, which are few and lie close together.
type skipNode struct {
	load       int64
	bucket     int32
	prev, next int32 // the neighbouring nodes on the level
}

// find returns the bucket of class c with the highest load that is not above
// load, none when all are above it. near is a bucket of c from which the search
// may be short, or none.
func (o *Order[V]) find(c, near int32, load int64) int32 {
	if near != none {
		b := &o.buckets[near]
		if b.load < load && (b.next == none || o.buckets[b.next].load >= load) {
			if b.next != none && o.buckets[b.next].load == load {
				return b.next
			}
			return near
		}
		if b.load > load && (b.prev == none || o.buckets[b.prev].load <= load) {
			return b.prev
		}
	}
	at := int32(none)
	for level := len(o.classes[c].levels) - 1; level >= 0; level-- {
		at = o.follow(c, below(at), level, load)
	}
	next := o.classes[c].lowest
	if at != none {
		at = o.nodes[at].bucket
		next = o.buckets[at].next
	}
	for next != none && o.buckets[next].load <= load {
		at, next = next, o.buckets[next].next
	}
	return at
}

// follow goes along a level of class c from node at of it, or from the start, as far
// as loads are not above load.
func (o *Order[V]) follow(c, at int32, level int, load int64) int32 {
	next := o.classes[c].levels[level]
	if at != none {
		next = o.nodes[at].next
	}
	for next != none && o.nodes[next].load <= load {
		at, next = next, o.nodes[next].next
	}
	return at
}

// below returns the node of the same bucket one level lower; none stays none.
func below(at int32) int32 {
	if at == none {
		return none
	}
	return at - 1
}

// newBucket inserts a bucket for load into class c after bucket prev, or first. A
// bucket that is used again keeps its number of levels.
func (o *Order[V]) newBucket(c, prev int32, load int64) int32 {
	i := int32(len(o.buckets))
	if last := len(o.freeBuckets) - 1; last >= 0 {
		i = o.freeBuckets[last]
		o.freeBuckets = o.freeBuckets[:last]
	} else {
		levels := bits.TrailingZeros32(rand.Uint32()|1<<(2*maxLevels)) / 2
		o.buckets = append(o.buckets, bucket{raised: int32(levels), node: int32(len(o.nodes))})
		for range levels {
			o.nodes = append(o.nodes, skipNode{bucket: i})
		}
	}
	b := &o.buckets[i]
	b.class, b.size, b.head, b.tail, b.prev = c, 0, None, None, prev
	o.setBucketLoad(b, load)
	if prev == none {
		b.next, o.classes[c].lowest = o.classes[c].lowest, i
	} else {
		b.next, o.buckets[prev].next = o.buckets[prev].next, i
	}
	if b.next != none {
		o.buckets[b.next].prev = i
	}
	if b.raised > 0 {
		o.link(c, i)
	}
	return i
}

// link puts bucket i of class c onto its levels.
func (o *Order[V]) link(c, i int32) {
	b, cl := &o.buckets[i], &o.classes[c]
	for len(cl.levels) < int(b.raised) {
		cl.levels = append(cl.levels, none)
	}
	at := int32(none)
	for level := len(cl.levels) - 1; level >= 0; level-- {
		at = o.follow(c, below(at), level, b.load)
		if level >= int(b.raised) {
			continue
		}
		next := &cl.levels[level]
		if at != none {
			next = &o.nodes[at].next
		}
		own := b.node + int32(level)
		o.nodes[own].prev, o.nodes[own].next = at, *next
		if *next != none {
			o.nodes[*next].prev = own
		}
		*next = own
	}
}

// setBucketLoad changes a bucket's load, which keeps its place.
func (o *Order[V]) setBucketLoad(b *bucket, load int64) {
	b.load = load
	for i := b.node; i < b.node+b.raised; i++ {
		o.nodes[i].load = load
	}
}

// freeBucket takes the empty bucket i out of its class.
func (o *Order[V]) freeBucket(i int32) {
	b := &o.buckets[i]
	if b.prev == none {
		o.classes[b.class].lowest = b.next
	} else {
		o.buckets[b.prev].next = b.next
	}
	if b.next != none {
		o.buckets[b.next].prev = b.prev
	}
	for level := range b.raised {
		n := &o.nodes[b.node+level]
		if n.prev == none {
			o.classes[b.class].levels[level] = n.next
		} else {
			o.nodes[n.prev].next = n.next
		}
		if n.next != none {
			o.nodes[n.next].prev = n.prev
		}
	}
	b.class = none
	o.freeBuckets = append(o.freeBuckets, i)
}
