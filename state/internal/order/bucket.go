package order

// bucket is a first-in-first-out list of the values that have one class and one
// load. The one at the head waits longest.
type bucket struct {
	load       int64
	class      int32 // none when free
	size       int32
	head, tail Handle
	prev, next int32 // the class's neighbouring loads, lower and higher
	raised     int32 // on how many levels of the skip list it is
	node       int32 // on the first of them; those above follow
}

// push puts h at the end of bucket b.
func (o *Order[V]) push(h Handle, b int32) {
	s, to := &o.slots[h], &o.buckets[b]
	s.bucket, s.prev, s.next = b, to.tail, None
	if to.tail == None {
		to.head = h
	} else {
		o.slots[to.tail].next = h
	}
	to.tail = h
	to.size++
}

// pushBefore puts h before at, whose stamp it takes over: only the head's is ever
// compared.
func (o *Order[V]) pushBefore(h, at Handle) {
	s, a := &o.slots[h], &o.slots[at]
	to := &o.buckets[a.bucket]
	s.bucket, s.prev, s.next, s.stamp = a.bucket, a.prev, at, a.stamp
	if a.prev == None {
		to.head = h
	} else {
		o.slots[a.prev].next = h
	}
	a.prev = h
	to.size++
}

// pull takes h out of its bucket.
func (o *Order[V]) pull(h Handle) {
	s := &o.slots[h]
	b := &o.buckets[s.bucket]
	b.size--
	if s.prev == None {
		b.head = s.next
	} else {
		o.slots[s.prev].next = s.next
	}
	if s.next == None {
		b.tail = s.prev
	} else {
		o.slots[s.next].prev = s.prev
	}
}

// fits reports whether bucket b, with another load, keeps its place.
func (o *Order[V]) fits(b *bucket, load int64) bool {
	return (b.prev == none || o.buckets[b.prev].load < load) &&
		(b.next == none || o.buckets[b.next].load > load)
}
