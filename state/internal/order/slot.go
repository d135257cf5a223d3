package order

import "math/rand/v2"

// slot is where a value stands. Slots, buckets and classes lie in tables of their
// order and know each other by index: a change of load writes no pointer, which
// would cost a write barrier each during garbage collection, and what it touches
// lies close together.
type slot[V any] struct {
	stamp      uint64 // when it came here; they rise along a bucket
	bucket     int32  // none when free, suspended or set aside
	class      int32  // none when free
	prev, next Handle // in the bucket
	index      int32  // in the order's handles
	value      V
	_          [4]byte // fills a cache line, with a value of four words
}

// newHandle gives the value a slot, which has no bucket yet.
func (o *Order[V]) newHandle(value V) Handle {
	if o.used == len(o.handles) {
		o.handles = append(o.handles, Handle(len(o.slots)))
		o.slots = append(o.slots, slot[V]{index: int32(o.used)})
	}
	h := o.handles[o.used]
	o.used++
	s := &o.slots[h]
	s.bucket, s.class, s.value = none, none, value
	return h
}

// freeHandle frees the slot of h, which has no bucket.
func (o *Order[V]) freeHandle(h Handle) {
	o.used--
	at, last := o.slots[h].index, o.handles[o.used]
	o.handles[at], o.slots[last].index = last, at
	o.handles[o.used], o.slots[h] = h, slot[V]{bucket: none, class: none, index: int32(o.used)}
}

// insertRandom puts h at a random place of bucket b. A short bucket is walked. For
// a long one handles are drawn until one is in b, which most are when b is long.
// When luck fails, h goes to the end.
func (o *Order[V]) insertRandom(h Handle, b int32) {
	const short, draws = 32, 32
	o.clock++
	s := &o.slots[h]
	s.stamp = o.clock
	size := int(o.buckets[b].size)
	if size == 0 {
		// Among equals of a class that it gets into later the stamp decides. A round
		// of serial calls over n values takes 2n stamps.
		s.stamp -= rand.Uint64N(min(o.clock, 2*uint64(o.used)))
	}
	if size <= short {
		at := o.buckets[b].head
		for range rand.IntN(size + 1) {
			at = o.slots[at].next
		}
		if at == None {
			o.push(h, b)
		} else {
			o.pushBefore(h, at)
		}
		return
	}
	for range draws {
		if at := o.handles[rand.IntN(o.used)]; o.slots[at].bucket == b {
			o.pushBefore(h, at)
			return
		}
	}
	o.push(h, b)
}
