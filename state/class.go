package state

import (
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
	order  *order
	weight float64
	size   int     // members
	slot   int     // leaf in the order's winners
	low    *bucket // the lowest load
	lanes  []*bucket
}

// lane is a bucket's neighbours on one express lane.
type lane struct{ prev, next *bucket }

// score is that of the class's best members. Division, since equal rationals
// must be equal floats.
func (c *class) score() float64 { return float64(c.low.load+1) / c.weight }

// newBucket returns an empty bucket with a random number of lanes.
func newBucket() *bucket {
	lanes := bits.TrailingZeros32(rand.Uint32()|1<<(2*maxLanes)) / 2
	if lanes == 0 {
		return &bucket{}
	}
	return &bucket{express: make([]lane, lanes)}
}

// find returns the bucket of the highest load that is not above load, nil when
// all are above it. at is a bucket from which the search may be short.
func (c *class) find(at *bucket, load int64) *bucket {
	if at != nil && at.load < load && (at.next == nil || at.next.load >= load) {
		if at.next != nil && at.next.load == load {
			return at.next
		}
		return at
	}
	if at != nil && at.load > load && (at.prev == nil || at.prev.load <= load) {
		return at.prev
	}
	at = nil
	for i := len(c.lanes) - 1; i >= 0; i-- {
		at = c.follow(at, i, load)
	}
	next := c.low
	if at != nil {
		next = at.next
	}
	for next != nil && next.load <= load {
		at, next = next, next.next
	}
	return at
}

// follow goes along lane i from at, or from its start, as far as loads are not
// above load.
func (c *class) follow(at *bucket, i int, load int64) *bucket {
	next := c.lanes[i]
	if at != nil {
		next = at.express[i].next
	}
	for next != nil && next.load <= load {
		at, next = next, next.express[i].next
	}
	return at
}

// insert puts the empty bucket b after prev, or first.
func (c *class) insert(b, prev *bucket) {
	b.class, b.prev = c, prev
	if prev == nil {
		b.next, c.low = c.low, b
	} else {
		b.next, prev.next = prev.next, b
	}
	if b.next != nil {
		b.next.prev = b
	}
	for len(c.lanes) < len(b.express) {
		c.lanes = append(c.lanes, nil)
	}
	var at *bucket
	for i := len(c.lanes) - 1; i >= 0 && len(b.express) > 0; i-- {
		at = c.follow(at, i, b.load)
		if i >= len(b.express) {
			continue
		}
		next := &c.lanes[i]
		if at != nil {
			next = &at.express[i].next
		}
		b.express[i] = lane{prev: at, next: *next}
		if *next != nil {
			(*next).express[i].prev = b
		}
		*next = b
	}
}

// drop takes the empty bucket b out.
func (c *class) drop(b *bucket) {
	if b.prev == nil {
		c.low = b.next
	} else {
		b.prev.next = b.next
	}
	if b.next != nil {
		b.next.prev = b.prev
	}
	b.class, b.prev, b.next = nil, nil, nil
	for i, l := range b.express {
		if l.prev == nil {
			c.lanes[i] = l.next
		} else {
			l.prev.express[i].next = l.next
		}
		if l.next != nil {
			l.next.express[i].prev = l.prev
		}
		b.express[i] = lane{}
	}
}
