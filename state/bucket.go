package state

// bucket is a first-in-first-out list of the members that have equal weights
// and the same load: the one at the head waits longest.
type bucket struct {
	class      *class
	load       int64
	size       int
	head, tail *Member
	prev, next *bucket // the class's neighbouring loads, lower and higher
	express    []lane  // the same, passing over the buckets of fewer lanes
}

// push puts m at the end.
func (b *bucket) push(m *Member) {
	m.bucket, m.prev, m.next = b, b.tail, nil
	if b.tail == nil {
		b.head = m
	} else {
		b.tail.next = m
	}
	b.tail = m
	b.size++
}

// pushBefore puts m before at, which takes over its stamp: stamps rise along
// the list, and only the head's is ever compared.
func (b *bucket) pushBefore(m, at *Member) {
	m.bucket, m.prev, m.next, m.stamp = b, at.prev, at, at.stamp
	if at.prev == nil {
		b.head = m
	} else {
		at.prev.next = m
	}
	at.prev = m
	b.size++
}

func (b *bucket) remove(m *Member) {
	if m.prev == nil {
		b.head = m.next
	} else {
		m.prev.next = m.next
	}
	if m.next == nil {
		b.tail = m.prev
	} else {
		m.next.prev = m.prev
	}
	m.bucket, m.prev, m.next = nil, nil, nil
	b.size--
}

// fits reports whether the bucket, with another load, keeps its place.
func (b *bucket) fits(load int64) bool {
	return (b.prev == nil || b.prev.load < load) && (b.next == nil || b.next.load > load)
}
