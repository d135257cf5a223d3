// Package order keeps values by weight and load so that the next one to choose
// is at hand: the one with the lowest score, (load + 1) / weight. Of equal scores
// the one that waits longest comes first. It has waited since it was appended or
// since its load changed; a new one is taken to have come at random.
//
// The values of one weight form a class, those of one class and load a bucket,
// first in, first out. A change costs O(log n), whatever the load becomes.
package order

// Handle names a value of an Order, from the call that put it in to its Remove.
type Handle int32

// None is no handle.
const None Handle = -1

// none is no place in one of an order's tables.
const none = -1

// Order holds values of type V. The zero Order is empty. It is not safe for
// concurrent use. A handle that it takes must be in use.
type Order[V any] struct {
	slots   []slot[V] // by handle
	handles []Handle  // of all slots: first the ones in use, then the free ones
	used    int

	buckets     []bucket
	freeBuckets []int32
	classes     []weightClass
	freeClasses []int32
	byWeight    map[uint64]int32 // classes in use, by quantum of the weight
	tree        classTree
	clock       uint64 // counts the stamps
}

// Len returns how many values there are.
func (o *Order[V]) Len() int { return o.used }

// Value returns the value of h.
func (o *Order[V]) Value(h Handle) V { return o.slots[h].value }

// SetValue changes the value of h, and nothing else.
func (o *Order[V]) SetValue(h Handle, value V) { o.slots[h].value = value }

// ClassWeight returns the weight that h is taken as having: its own, or one near
// it that another value had before.
func (o *Order[V]) ClassWeight(h Handle) float64 {
	return o.classes[o.buckets[o.slots[h].bucket].class].weight
}

// First returns the handle to choose next, None when the order is empty.
func (o *Order[V]) First() Handle {
	if o.tree.size == 0 {
		return None
	}
	return o.head(o.tree.best)
}

// head returns the handle of class c that is to be chosen next.
func (o *Order[V]) head(c int32) Handle { return o.buckets[o.classes[c].lowest].head }

// Insert adds a value at a random place among its equals. The weight must be
// above 0.
func (o *Order[V]) Insert(weight float64, load int64, value V) Handle {
	h := o.newHandle(value)
	c, b := o.bucketFor(weight, load)
	o.insertRandom(h, b)
	o.update(c)
	return h
}

// Append adds a value behind its equals. The weight must be above 0.
func (o *Order[V]) Append(weight float64, load int64, value V) Handle {
	h := o.newHandle(value)
	o.requeue(h, weight, load)
	return h
}

// Remove takes h out. Other handles stay as they are.
func (o *Order[V]) Remove(h Handle) {
	o.detach(h)
	o.freeHandle(h)
}

// SetWeight changes the weight of h, which must be above 0. It keeps its turn: it
// waits since when it waited.
func (o *Order[V]) SetWeight(h Handle, weight float64) {
	load, stamp := o.buckets[o.slots[h].bucket].load, o.slots[h].stamp
	o.detach(h)
	c, b := o.bucketFor(weight, load)
	at := o.buckets[b].head
	for at != None && o.slots[at].stamp <= stamp {
		at = o.slots[at].next
	}
	if at == None {
		o.push(h, b)
	} else {
		o.pushBefore(h, at)
	}
	o.slots[h].stamp = stamp
	o.update(c)
}

// SetLoad changes the load of h, which goes behind its equals.
func (o *Order[V]) SetLoad(h Handle, load int64) {
	s := &o.slots[h]
	b := &o.buckets[s.bucket]
	to := b.next
	if load < b.load {
		to = b.prev
	}
	if to == none || o.buckets[to].load != load {
		o.setFarLoad(h, load)
		return
	}
	c := b.class
	first := o.head(c) == h
	o.clock++
	s.stamp = o.clock
	o.pull(h)
	if b.size == 0 {
		o.freeBucket(s.bucket)
	}
	o.push(h, to)
	if first {
		o.update(c)
	}
}

// setFarLoad is SetLoad where no neighbouring bucket has the load.
func (o *Order[V]) setFarLoad(h Handle, load int64) {
	s := &o.slots[h]
	from := s.bucket
	b := &o.buckets[from]
	c := b.class
	first := o.head(c) == h
	o.clock++
	s.stamp = o.clock
	if b.size == 1 && o.fits(b, load) {
		b.load = load
	} else {
		to := o.find(c, from, load)
		if to == none || o.buckets[to].load != load {
			to = o.newBucket(c, to, load)
		}
		o.pull(h)
		o.push(h, to)
		if o.buckets[from].size == 0 {
			o.freeBucket(from)
		}
	}
	if first || o.head(c) == h {
		o.update(c)
	}
}

// Excluding calls choose while the handles hs, each once, are set aside: First is
// one of the others. Then it puts hs behind their equals, in this order. Meanwhile
// choose must not use them.
func (o *Order[V]) Excluding(hs []Handle, choose func()) {
	type origin struct {
		weight float64
		load   int64
	}
	var origins []origin
	for _, h := range hs {
		origins = append(origins, origin{o.ClassWeight(h), o.buckets[o.slots[h].bucket].load})
		o.detach(h)
	}
	choose()
	for i, h := range hs {
		o.requeue(h, origins[i].weight, origins[i].load)
	}
}

// IsWorst reports whether h has a higher score than any other. It costs O(log n)
// for each class.
func (o *Order[V]) IsWorst(h Handle) bool {
	own := &o.buckets[o.slots[h].bucket]
	score := own.score(o.classes[own.class].weight)
	for _, c := range o.byWeight {
		if o.highestScore(c, h) >= score {
			return false
		}
	}
	return true
}

// requeue puts h, which has no bucket, behind its equals.
func (o *Order[V]) requeue(h Handle, weight float64, load int64) {
	c, b := o.bucketFor(weight, load)
	o.clock++
	o.slots[h].stamp = o.clock
	o.push(h, b)
	o.update(c)
}

// detach takes h out of its bucket and its class.
func (o *Order[V]) detach(h Handle) {
	s := &o.slots[h]
	b := s.bucket
	c := o.buckets[b].class
	o.pull(h)
	s.bucket = none
	if o.buckets[b].size == 0 {
		o.freeBucket(b)
	}
	if o.classes[c].size--; o.classes[c].size > 0 {
		o.update(c)
		return
	}
	o.freeClass(c)
}

// update takes up that the head of class c or its load has changed. Where there is
// one class only, nobody looks at the tree.
func (o *Order[V]) update(c int32) {
	if o.tree.size > 1 {
		o.tree.set(c, o.key(c))
	}
}

// key returns what class c is compared by: the score and the stamp of its head.
func (o *Order[V]) key(c int32) classKey {
	cl := &o.classes[c]
	b := &o.buckets[cl.lowest]
	return classKey{b.score(cl.weight), o.slots[b.head].stamp}
}
