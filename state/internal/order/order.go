// Package order keeps values by weight and load so that the next one to choose
// is at hand. The values of one weight form a class, those of one class and load a
// bucket.
//
// Within a class the lowest load comes first, and of equals the one that waits
// longest. It has waited since it was appended or since its load changed; a new one
// is taken to have come at random.
//
// Among classes counts decide first: nobody is chosen that would get a whole unit
// above its weighted share of the load, or above what another would have with one
// more. Those that remain take turns in proportion to their weights, so that choices
// one after another are spread by weight, and so are the first ones of many orders
// that know nothing of each other.
//
// A change costs O(log n), whatever the load becomes; where all have one weight, a
// load that changes by one costs O(1).
package order

// Handle names a value of an Order, from the call that put it in to its Remove.
type Handle int32

// None is no handle.
const None Handle = -1

// none is no place in one of an order's tables.
const none = -1

// Order holds values of type V. The zero Order is empty. It is not safe for
// concurrent use. A handle that it takes must be in use, and not suspended unless it
// says so.
type Order[V any] struct {
	slots   []slot[V] // by handle
	handles []Handle  // of all slots: first the ones in use, then the free ones
	used    int
	placed  int // of those in use, the ones in buckets

	buckets     []bucket
	nodes       []skipNode // of the buckets, on the levels of skip lists
	freeBuckets []int32
	classes     []weightClass
	freeClasses []int32
	byWeight    map[uint64]int32 // classes in use, by quantum of the weight
	only        int32            // the class, where there is one only
	tree        classTree        // of the classes with buckets, where there are more
	stale       int32            // the class whose turn the tree does not know yet, or none
	turns       turns
	clock       uint64 // counts the stamps
}

// Len returns how many values there are that may be chosen.
func (o *Order[V]) Len() int { return o.placed }

// Handles returns how many handles there are: each one is below that.
func (o *Order[V]) Handles() int { return len(o.slots) }

// Value returns the value of h, which may be suspended.
func (o *Order[V]) Value(h Handle) V { return o.slots[h].value }

// SetValue changes the value of h, which may be suspended, and nothing else.
func (o *Order[V]) SetValue(h Handle, value V) { o.slots[h].value = value }

// ClassWeight returns the weight that h, which may be suspended, is taken as having:
// its own, or one near it that another value had before.
func (o *Order[V]) ClassWeight(h Handle) float64 { return o.classes[o.slots[h].class].weight }

// Insert adds a value at a random place among its equals. The weight must be
// above 0.
func (o *Order[V]) Insert(weight float64, load int64, value V) Handle {
	h := o.newHandle(value)
	c := o.enlist(h, weight)
	o.resize(c, 1)
	o.insertRandom(h, o.bucketFor(c, load))
	o.update(c)
	return h
}

// Append adds a value behind its equals. The weight must be above 0.
func (o *Order[V]) Append(weight float64, load int64, value V) Handle {
	h := o.newHandle(value)
	o.enlist(h, weight)
	o.Resume(h, load)
	return h
}

// Remove takes h, which may be suspended, out. Other handles stay as they are.
func (o *Order[V]) Remove(h Handle) {
	if s := &o.slots[h]; s.bucket != none {
		c := s.class
		o.detach(h)
		o.resize(c, -1)
	}
	o.delist(h)
	o.freeHandle(h)
}

// Suspend lets h not be chosen until its Resume. Meanwhile its class keeps its turn.
func (o *Order[V]) Suspend(h Handle) {
	c := o.slots[h].class
	o.detach(h)
	o.resize(c, -1)
	o.update(c)
}

// Resume puts h, which is suspended, behind its equals.
func (o *Order[V]) Resume(h Handle, load int64) {
	o.resize(o.slots[h].class, 1)
	o.requeue(h, load)
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
	c, from := b.class, s.bucket
	lowest := o.classes[c].lowest
	o.turns.load += load - b.load
	o.clock++
	s.stamp = o.clock
	o.pull(h)
	if b.size == 0 {
		o.freeBucket(from)
	}
	o.push(h, to)
	if lowest == from || lowest == to {
		o.update(c)
	}
}

// setFarLoad is SetLoad where no neighbouring bucket has the load.
func (o *Order[V]) setFarLoad(h Handle, load int64) {
	s := &o.slots[h]
	from := s.bucket
	b := &o.buckets[from]
	c := b.class
	low := o.classes[c].lowest == from
	o.turns.load += load - b.load
	o.clock++
	s.stamp = o.clock
	if b.size == 1 && o.fits(b, load) {
		o.setBucketLoad(b, load)
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
	if low || o.classes[c].lowest == s.bucket {
		o.update(c)
	}
}

// Excluding calls choose while the handles hs, each once, are set aside: Next returns
// one of the others. Then it puts hs behind their equals, in this order. Meanwhile
// choose must not use them. The turns of their classes go on as if they were there.
func (o *Order[V]) Excluding(hs []Handle, choose func()) {
	var loads []int64
	for _, h := range hs {
		loads = append(loads, o.buckets[o.slots[h].bucket].load)
		o.detach(h)
		o.update(o.slots[h].class)
	}
	choose()
	for i, h := range hs {
		o.requeue(h, loads[i])
	}
}

// IsWorst reports whether h's load over weight is not below what any other would have
// with one more. It costs O(log n) for each class.
func (o *Order[V]) IsWorst(h Handle) bool {
	own := &o.buckets[o.slots[h].bucket]
	level := float64(own.load) / o.classes[own.class].weight
	for _, c := range o.byWeight {
		if o.highestAfter(c, h) > level {
			return false
		}
	}
	return true
}

// requeue puts h, which has no bucket, behind its equals.
func (o *Order[V]) requeue(h Handle, load int64) {
	c := o.slots[h].class
	b := o.bucketFor(c, load)
	o.clock++
	o.slots[h].stamp = o.clock
	o.push(h, b)
	o.update(c)
}

// bucketFor returns the bucket for one value more of class c, and counts it.
func (o *Order[V]) bucketFor(c int32, load int64) int32 {
	o.count(c, 1, load)
	b := o.find(c, none, load)
	if b == none || o.buckets[b].load != load {
		b = o.newBucket(c, b, load)
	}
	return b
}

// detach takes h out of its bucket. Its class is to be updated.
func (o *Order[V]) detach(h Handle) {
	s := &o.slots[h]
	b := s.bucket
	o.count(s.class, -1, -o.buckets[b].load)
	o.pull(h)
	s.bucket = none
	if o.buckets[b].size == 0 {
		o.freeBucket(b)
	}
}

// count counts a value that comes to a bucket of class c, by 1, or goes, by −1.
func (o *Order[V]) count(c, by int32, load int64) {
	cl := &o.classes[c]
	cl.size += by
	o.placed += int(by)
	o.turns.load += load
	o.turns.weight.Add(float64(by) * cl.weight)
	if o.placed == 0 {
		o.turns.weight = Sum{}
	}
}
