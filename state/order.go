package state

import (
	"math"
	"math/rand/v2"
)

// order keeps the members that a view may choose so that the one with the
// lowest score is at hand: classes by weight, in each class buckets by load, in
// each bucket the members by how long they wait. Loads may change by any
// amount. The ledger's mutex guards it.
type order struct {
	classes map[uint64]*class // by quantum of the weight
	winners winners
	members []*Member // in no order, to draw from
	clock   uint64    // counts what is put at the end of a bucket
	spare   *bucket   // empty ones, linked by next, for those that are needed next
}

// first returns the member to choose next, nil without one.
func (o *order) first() *Member {
	c := o.winners.best()
	if c == nil {
		return nil
	}
	return c.low.head
}

// place puts the newcomer m at a random place among its equals.
func (o *order) place(m *Member, load int64) {
	m.index = len(o.members)
	o.members = append(o.members, m)
	c := o.classOf(float64(m.weight))
	c.size++
	b := c.find(nil, load)
	if b == nil || b.load != load {
		b = o.newBucket(c, b, load)
	}
	o.mix(m, b)
	if c.size == 1 {
		o.winners.add(c)
	} else {
		o.winners.fix(c)
	}
}

// remove takes m out.
func (o *order) remove(m *Member) {
	last := len(o.members) - 1
	o.members[m.index] = o.members[last]
	o.members[m.index].index = m.index
	o.members[last] = nil
	o.members = o.members[:last]

	b := m.bucket
	c := b.class
	c.size--
	b.remove(m)
	if b.size == 0 {
		o.dropBucket(c, b)
	}
	if c.size == 0 {
		o.winners.drop(c)
		delete(o.classes, quantum(c.weight))
		return
	}
	o.winners.fix(c)
}

// move takes up that m's load is load now: m goes to the end of its equals.
func (o *order) move(m *Member, load int64) {
	from := m.bucket
	c := from.class
	head, low := c.low.head, c.low.load
	o.clock++
	m.stamp = o.clock
	if from.size == 1 && from.fits(load) {
		from.load = load
	} else {
		to := c.find(from, load)
		if to == nil || to.load != load {
			to = o.newBucket(c, to, load)
		}
		from.remove(m)
		to.push(m)
		if from.size == 0 {
			o.dropBucket(c, from)
		}
	}
	if c.low.head != head || c.low.load != low {
		o.winners.fix(c)
	}
}

// newBucket inserts a bucket for load after prev.
func (o *order) newBucket(c *class, prev *bucket, load int64) *bucket {
	b := o.spare
	if b == nil {
		b = newBucket()
	} else {
		o.spare, b.next = b.next, nil
	}
	b.load = load
	c.insert(b, prev)
	return b
}

func (o *order) dropBucket(c *class, b *bucket) {
	c.drop(b)
	b.next, o.spare = o.spare, b
}

// mix puts m at a random place of b. A short list is walked; in a long one
// members of the order are drawn until one stands in b, which most do when b is
// long. When luck fails, m goes to the end.
func (o *order) mix(m *Member, b *bucket) {
	const short, draws = 32, 32
	o.clock++
	m.stamp = o.clock
	if b.size == 0 {
		// Among equals of other classes the stamp decides.
		m.stamp -= rand.Uint64N(min(o.clock, uint64(len(o.members))))
	}
	if b.size <= short {
		at := b.head
		for range rand.IntN(b.size + 1) {
			at = at.next
		}
		if at == nil {
			b.push(m)
		} else {
			b.pushBefore(m, at)
		}
		return
	}
	for range draws {
		if at := o.members[rand.IntN(len(o.members))]; at.bucket == b {
			b.pushBefore(m, at)
			return
		}
	}
	b.push(m)
}

// nearWeight is how far, relative to one already there, a weight may be and
// still be taken as that one: fixed-point shares of equals differ by a unit.
const nearWeight = 1.0 / (1 << 16)

// quantum cuts a weight to sixteen bits of fraction. Weights of one quantum are
// near each other, and weights near each other are at most one quantum apart.
func quantum(weight float64) uint64 { return math.Float64bits(weight) >> (52 - 16) }

// classOf returns the class that has the weight, or the nearest of those near
// it, or a new one.
func (o *order) classOf(weight float64) *class {
	q := quantum(weight)
	var best *class
	for _, c := range []*class{o.classes[q-1], o.classes[q], o.classes[q+1]} {
		if c == nil || math.Abs(weight-c.weight) > nearWeight*c.weight {
			continue
		}
		if best == nil || math.Abs(weight-c.weight) < math.Abs(weight-best.weight) {
			best = c
		}
	}
	if best == nil {
		best = &class{order: o, weight: weight}
		if o.classes == nil {
			o.classes = map[uint64]*class{}
		}
		o.classes[q] = best
	}
	return best
}
