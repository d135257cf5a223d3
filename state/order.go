package state

import (
	"math"
	"math/rand/v2"
)

// order keeps the members that a ready set may choose so that the one with the
// lowest score is at hand: classes by weight, in each class buckets by load, in
// each bucket the members by how long they wait. Loads may change by any
// amount. The ledger's mutex guards it.
type order struct {
	seats   []seat
	buckets []bucket
	classes []class

	byWeight    map[uint64]int32 // classes in use, by quantum of the weight
	freeClasses []int32
	spare       int32 // first of the buckets not in use, which next links
	top         int32 // class with the lowest score; none when empty
	many        bool  // more than one class is in use, and winners is kept in step
	winners     winners
	clock       uint64 // counts the stamps
}

func newOrder() order { return order{spare: none, top: none} }

// first returns the entry of the member to choose next, nil without one.
func (o *order) first() *entry {
	if o.top == none {
		return nil
	}
	return &o.seats[o.head(o.top)].entry
}

// head returns the seat of the best member of class c that waits longest.
func (o *order) head(c int32) int32 { return o.buckets[o.classes[c].low].head }

func (o *order) headStamp(c int32) uint64 { return o.seats[o.head(c)].stamp }

// takenWeight returns the weight that the member on seat i is taken as having.
func (o *order) classWeight(i int32) float64 {
	return o.classes[o.buckets[o.seats[i].bucket].class].weight
}

// score returns that of the best members of class c. Division, since equal
// rationals must be equal floats.
func (o *order) score(c int32) float64 {
	cl := &o.classes[c]
	return float64(o.buckets[cl.low].load+1) / cl.weight
}

// compete takes up a change of the score or the head of class c.
func (o *order) compete(c int32) {
	if o.many {
		o.winners.set(o, c, o.score(c))
		o.top = o.winners.best()
	}
}

// enter lets the new class c compete.
func (o *order) enter(c int32) {
	if o.top == none {
		o.top = c // nobody to beat
		return
	}
	if !o.many {
		o.many = true
		o.compete(o.top)
	}
	o.compete(c)
}

// leave ends the part of class c, which is empty.
func (o *order) leave(c int32) {
	o.freeClass(c)
	if o.many {
		o.winners.set(o, c, math.Inf(1))
		o.top = o.winners.best()
		o.many = len(o.byWeight) > 1
	} else {
		o.top = none
	}
}

// place puts m at a random place among its equals, as a newcomer.
func (o *order) place(m *Member, weight float64, value any) {
	c, b := o.sit(m, weight, value)
	o.mix(m.seat, b)
	o.seated(c)
}

// replace puts m, which was set aside, at the end of its equals: it was used.
func (o *order) replace(m *Member, weight float64, value any) {
	c, b := o.sit(m, weight, value)
	o.clock++
	o.seats[m.seat].stamp = o.clock
	o.push(m.seat, b)
	o.seated(c)
}

// sit gives m a seat and finds its class and bucket.
func (o *order) sit(m *Member, weight float64, value any) (c, b int32) {
	m.seat = int32(len(o.seats))
	o.seats = append(o.seats, seat{entry: entry{endpoint: m.endpoint, value: value, member: m}})
	m.endpoint.places = append(m.endpoint.places, place{o, m.seat})
	load := m.endpoint.load
	c = o.classOf(weight)
	o.classes[c].size++
	b = o.find(c, none, load)
	if b == none || o.buckets[b].load != load {
		b = o.newBucket(c, b, load)
	}
	return c, b
}

// seated lets class c compete with its new member.
func (o *order) seated(c int32) {
	if o.classes[c].size == 1 {
		o.enter(c)
	} else {
		o.compete(c)
	}
}

// remove takes m out; the last seat moves to its place.
func (o *order) remove(m *Member) {
	i, last := m.seat, int32(len(o.seats)-1)
	m.endpoint.unplace(o)
	m.seat = none
	o.pull(i)
	b := o.seats[i].bucket
	c := o.buckets[b].class
	if i != last {
		moved := o.seats[last]
		o.renumber(&moved, i)
		o.seats[i] = moved
		moved.member.seat = i
		moved.endpoint.placeIn(o).seat = i
	}
	o.seats[last] = seat{}
	o.seats = o.seats[:last]

	if o.buckets[b].size == 0 {
		o.freeBucket(b)
	}
	if o.classes[c].size--; o.classes[c].size > 0 {
		o.compete(c)
		return
	}
	o.leave(c)
}

// move takes up that the load of the member on seat i is load now: it goes to
// the end of its equals.
func (o *order) move(i int32, load int64) {
	s := &o.seats[i]
	b := &o.buckets[s.bucket]
	to := b.next
	if load < b.load {
		to = b.prev
	}
	if to == none || o.buckets[to].load != load {
		o.jump(i, load)
		return
	}
	c := b.class
	first := o.head(c) == i
	o.clock++
	s.stamp = o.clock
	o.pull(i)
	if b.size == 0 {
		o.freeBucket(s.bucket)
	}
	o.push(i, to)
	if first {
		o.compete(c)
	}
}

// jump does what move does when no bucket next door has the load.
func (o *order) jump(i int32, load int64) {
	s := &o.seats[i]
	from := s.bucket
	b := &o.buckets[from]
	c := b.class
	low := o.classes[c].low
	head, least := o.buckets[low].head, o.buckets[low].load
	o.clock++
	s.stamp = o.clock
	if b.size == 1 && o.fits(b, load) {
		b.load = load
	} else {
		to := o.find(c, from, load)
		if to == none || o.buckets[to].load != load {
			to = o.newBucket(c, to, load)
		}
		o.pull(i)
		o.push(i, to)
		if o.buckets[from].size == 0 {
			o.freeBucket(from)
		}
	}
	low = o.classes[c].low
	if o.buckets[low].head != head || o.buckets[low].load != least {
		o.compete(c)
	}
}

// mix puts seat i at a random place of bucket b. A short list is walked; in a
// long one seats of the order are drawn until one is of b, which most are when b
// is long. When luck fails, i goes to the end.
func (o *order) mix(i, b int32) {
	const short, draws = 32, 32
	o.clock++
	o.seats[i].stamp = o.clock
	o.seats[i].bucket = none
	size := int(o.buckets[b].size)
	if size == 0 {
		// Among equals of other classes the stamp decides; a round of serial calls
		// over n members takes 2n stamps.
		o.seats[i].stamp -= rand.Uint64N(min(o.clock, 2*uint64(len(o.seats))))
	}
	if size <= short {
		at := o.buckets[b].head
		for range rand.IntN(size + 1) {
			at = o.seats[at].next
		}
		if at == none {
			o.push(i, b)
		} else {
			o.pushBefore(i, at)
		}
		return
	}
	for range draws {
		if at := rand.Int32N(int32(len(o.seats))); o.seats[at].bucket == b {
			o.pushBefore(i, at)
			return
		}
	}
	o.push(i, b)
}
