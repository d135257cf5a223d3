package state

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// check returns what is wrong in the order; see [Ledger.Check].
func (o *order) check() error {
	var errs []error
	for i := range o.seats {
		errs = append(errs, o.checkSeat(int32(i), o.seats[i].entry))
	}
	seated := 0
	for q, c := range o.byWeight {
		n, err := o.checkClass(c)
		errs = append(errs, err)
		seated += n
		if quantum(o.classes[c].weight) != q {
			errs = append(errs, fmt.Errorf("class %v is found by another weight", o.classes[c].weight))
		}
	}
	if seated != len(o.seats) {
		errs = append(errs, fmt.Errorf("%d members in buckets, %d seats", seated, len(o.seats)))
	}
	spare := 0
	for b := o.spare; b != none; b = o.buckets[b].next {
		spare++
		if o.buckets[b].class != none || o.buckets[b].size != 0 {
			errs = append(errs, fmt.Errorf("the spare bucket %d is in use", b))
		}
	}
	return errors.Join(append(errs, o.checkFirst(), o.checkMatches(), o.checkTables(spare))...)
}

func (o *order) checkSeat(i int32, e entry) error {
	m := e.member
	if m.seat != i || e.endpoint != m.endpoint || m.endpoint == nil || !slices.Contains(m.endpoint.places, place{o, i}) {
		return fmt.Errorf("member %q is not on seat %d", m.addrs, i)
	}
	b := &o.buckets[o.seats[i].bucket]
	if b.load != m.endpoint.load {
		return fmt.Errorf("member %q stands at %d, not at its endpoint's load", m.addrs, b.load)
	}
	w := o.classes[b.class].weight
	if math.Abs(m.effectiveWeight()-w) > nearWeight*w {
		return fmt.Errorf("member %q with weight %v stands in class %v", m.addrs, m.effectiveWeight(), w)
	}
	return nil
}

// checkFirst asserts that the member to choose next is the best one that waits
// longest.
func (o *order) checkFirst() error {
	best := none
	for _, c := range o.byWeight {
		if best == none || o.score(c) < o.score(best) ||
			o.score(c) == o.score(best) && o.headStamp(c) < o.headStamp(best) {
			best = c
		}
	}
	first := o.first()
	if best == none {
		if first != nil {
			return errors.New("an empty order has a first member")
		}
		return nil
	}
	if first == nil {
		return errors.New("an order with members has no first one")
	}
	i := first.member.seat
	c := o.buckets[o.seats[i].bucket].class
	if o.score(c) != o.score(best) || o.headStamp(c) != o.headStamp(best) || o.head(c) != i {
		return fmt.Errorf("the first member %q is not the best one that waits longest", first.member.addrs)
	}
	return nil
}

// checkMatches plays all matches of two classes or more. Of equals that wait
// equally long any may have won.
func (o *order) checkMatches() error {
	if o.many != (len(o.byWeight) > 1) || (o.top == none) != (len(o.byWeight) == 0) {
		return fmt.Errorf("%d classes in use; many: %t, top: %d", len(o.byWeight), o.many, o.top)
	}
	if !o.many {
		return nil
	}
	w := &o.winners
	for i, score := range w.scores[0] {
		used := i < len(o.classes) && o.classes[i].size > 0
		if used && score != o.score(int32(i)) || !used && !math.IsInf(score, 1) {
			return fmt.Errorf("leaf %d has score %v", i, score)
		}
	}
	for k := 1; k < len(w.scores); k++ {
		for g := range w.scores[k] {
			won, score := w.play(o, k-1, g)
			same := won == w.leaf[k][g] || math.IsInf(score, 1) ||
				o.headStamp(won) == o.headStamp(w.leaf[k][g])
			if score != w.scores[k][g] || !same {
				return fmt.Errorf("match %d of level %d was won by leaf %d with %v", g, k, w.leaf[k][g], w.scores[k][g])
			}
		}
	}
	return nil
}

// checkTables asserts that nothing is lost from the tables.
func (o *order) checkTables(spare int) error {
	used := 0
	for _, c := range o.byWeight {
		for b := o.classes[c].low; b != none; b = o.buckets[b].next {
			used++
		}
	}
	if used+spare != len(o.buckets) {
		return fmt.Errorf("%d buckets in use and %d spare of %d", used, spare, len(o.buckets))
	}
	if len(o.byWeight)+len(o.freeClasses) != len(o.classes) {
		return fmt.Errorf("%d classes in use and %d free of %d", len(o.byWeight), len(o.freeClasses), len(o.classes))
	}
	return nil
}

// checkClass returns the number of members, too.
func (o *order) checkClass(c int32) (int, error) {
	var errs []error
	cl := &o.classes[c]
	members := 0
	var onLane [maxLanes]int
	prev := none
	for i := cl.low; i != none; prev, i = i, o.buckets[i].next {
		b := &o.buckets[i]
		for k := range b.express {
			onLane[k]++
		}
		if b.class != c || b.prev != prev || prev != none && o.buckets[prev].load >= b.load {
			errs = append(errs, fmt.Errorf("class %v: bucket %d is out of order", cl.weight, b.load))
		}
		errs = append(errs, o.checkBucket(i))
		members += int(b.size)
	}
	for k, i := range cl.lanes {
		last := none
		for ; i != none; last, i = i, o.buckets[i].express[k].next {
			b := &o.buckets[i]
			if b.class != c || b.express[k].prev != last || last != none && o.buckets[last].load >= b.load {
				errs = append(errs, fmt.Errorf("class %v: bucket %d is out of order on lane %d", cl.weight, b.load, k))
			}
			onLane[k]--
		}
	}
	if onLane != [maxLanes]int{} {
		errs = append(errs, fmt.Errorf("class %v: more or fewer buckets on the lanes than have them: %v", cl.weight, onLane))
	}
	if members != cl.size || members == 0 {
		errs = append(errs, fmt.Errorf("class %v: size %d with %d members", cl.weight, cl.size, members))
	}
	return members, errors.Join(errs...)
}

func (o *order) checkBucket(i int32) error {
	b := &o.buckets[i]
	n := int32(0)
	prev := none
	for s := b.head; s != none; prev, s = s, o.seats[s].next {
		n++
		at := &o.seats[s]
		if at.bucket != i || at.prev != prev || prev != none && o.seats[prev].stamp > at.stamp {
			return fmt.Errorf("bucket %d is broken at seat %d", b.load, s)
		}
	}
	if n != b.size || n == 0 || b.tail != prev {
		return fmt.Errorf("bucket %d has size %d with %d members", b.load, b.size, n)
	}
	return nil
}
