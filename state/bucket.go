package state

// none is no place in one of an order's tables.
const none int32 = -1

// seat is a member's place in an order. Seats, buckets and classes lie in
// tables of their order and know each other by index: a pick moves a member
// without writing a pointer, which would cost a write barrier each during
// garbage collection, and what it touches lies close together.
type seat struct {
	stamp      uint64 // when it took the place; they rise along a bucket
	bucket     int32
	prev, next int32 // seats
	entry
	_ [8]byte // fills a cache line
}

// entry is the member on a seat, with what a pick needs of it.
type entry struct {
	endpoint *endpoint
	value    any
	member   *Member
}

// bucket is a first-in-first-out list of the members that have equal weights
// and the same load: the one at the head waits longest.
type bucket struct {
	load       int64
	class      int32
	size       int32
	head, tail int32  // seats
	prev, next int32  // the class's neighbouring loads, lower and higher
	express    []lane // the same, passing over the buckets of fewer lanes
}

// lane is a bucket's neighbours on one express lane.
type lane struct{ prev, next int32 }

// push puts seat i at the end of bucket b.
func (o *order) push(i, b int32) {
	s, to := &o.seats[i], &o.buckets[b]
	s.bucket, s.prev, s.next = b, to.tail, none
	if to.tail == none {
		to.head = i
	} else {
		o.seats[to.tail].next = i
	}
	to.tail = i
	to.size++
}

// pushBefore puts seat i before seat at, whose stamp it takes over: only the
// head's is ever compared.
func (o *order) pushBefore(i, at int32) {
	s, a := &o.seats[i], &o.seats[at]
	to := &o.buckets[a.bucket]
	s.bucket, s.prev, s.next, s.stamp = a.bucket, a.prev, at, a.stamp
	if a.prev == none {
		to.head = i
	} else {
		o.seats[a.prev].next = i
	}
	a.prev = i
	to.size++
}

// pull takes seat i out of its bucket.
func (o *order) pull(i int32) {
	s := &o.seats[i]
	b := &o.buckets[s.bucket]
	b.size--
	if s.prev == none {
		b.head = s.next
	} else {
		o.seats[s.prev].next = s.next
	}
	if s.next == none {
		b.tail = s.prev
	} else {
		o.seats[s.next].prev = s.prev
	}
}

// renumber makes the neighbours of the seat s, which moves to place i, know it
// there.
func (o *order) renumber(s *seat, i int32) {
	b := &o.buckets[s.bucket]
	if s.prev == none {
		b.head = i
	} else {
		o.seats[s.prev].next = i
	}
	if s.next == none {
		b.tail = i
	} else {
		o.seats[s.next].prev = i
	}
}

// fits reports whether bucket b, with another load, keeps its place.
func (o *order) fits(b *bucket, load int64) bool {
	return (b.prev == none || o.buckets[b.prev].load < load) &&
		(b.next == none || o.buckets[b.next].load > load)
}
