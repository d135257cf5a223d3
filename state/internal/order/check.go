package order

import (
	"errors"
	"fmt"
	"math"
)

// Standing is where a value is meant to stand.
type Standing struct {
	Weight    float64
	Load      int64 // of no interest when suspended
	Suspended bool
}

// Check returns what is wrong in the order, nil when all invariants hold. want
// tells where a value is meant to stand. It costs O(n): it is for tests.
func (o *Order[V]) Check(want func(V) Standing) error {
	var errs []error
	inBuckets, buckets := 0, 0
	for q, c := range o.byWeight {
		values, n, err := o.checkClass(c)
		errs = append(errs, err)
		inBuckets += values
		buckets += n
		if quantum(o.classes[c].weight) != q {
			errs = append(errs, fmt.Errorf("class %v is found by another weight", o.classes[c].weight))
		}
	}
	if inBuckets != o.placed {
		errs = append(errs, fmt.Errorf("%d values in buckets, %d are counted", inBuckets, o.placed))
	}
	errs = append(errs, o.checkHandles(want), o.checkFree(buckets), o.checkTurns(), o.checkTree())
	return errors.Join(errs...)
}

// checkHandles asserts that each handle is used or free, once, and that those
// used are where their weight and load belong.
func (o *Order[V]) checkHandles(want func(V) Standing) error {
	if len(o.handles) != len(o.slots) {
		return fmt.Errorf("%d handles for %d slots", len(o.handles), len(o.slots))
	}
	members := map[int32]int{}
	for i, h := range o.handles {
		s := &o.slots[h]
		if s.index != int32(i) {
			return fmt.Errorf("handle %d is not at its index %d", h, s.index)
		}
		if used := i < o.used; used != (s.class != none) {
			return fmt.Errorf("handle %d in class %d is used: %t", h, s.class, used)
		}
		if s.class == none {
			continue
		}
		members[s.class]++
		if err := o.checkStanding(h, want(s.value)); err != nil {
			return err
		}
	}
	for _, c := range o.byWeight {
		if n := int(o.classes[c].members); n != members[c] {
			return fmt.Errorf("class %v has %d members, %d are of it", o.classes[c].weight, n, members[c])
		}
	}
	return nil
}

func (o *Order[V]) checkStanding(h Handle, want Standing) error {
	s := &o.slots[h]
	if suspended := s.bucket == none; suspended != want.Suspended {
		return fmt.Errorf("handle %d in bucket %d is suspended: %t", h, s.bucket, want.Suspended)
	}
	if w := o.classes[s.class].weight; math.Abs(want.Weight-w) > nearWeight*w {
		return fmt.Errorf("handle %d with weight %v stands in class %v", h, want.Weight, w)
	}
	if s.bucket == none {
		return nil
	}
	b := &o.buckets[s.bucket]
	if b.load != want.Load {
		return fmt.Errorf("handle %d with load %d stands at %d", h, want.Load, b.load)
	}
	if b.class != s.class {
		return fmt.Errorf("handle %d of class %d stands in one of class %d", h, s.class, b.class)
	}
	return nil
}

// checkFree asserts that what is not in use is free, with that many buckets in use.
func (o *Order[V]) checkFree(buckets int) error {
	for _, b := range o.freeBuckets {
		if o.buckets[b].class != none || o.buckets[b].size != 0 {
			return fmt.Errorf("the free bucket %d is in use", b)
		}
	}
	if buckets+len(o.freeBuckets) != len(o.buckets) {
		return fmt.Errorf("%d buckets in use and %d free of %d", buckets, len(o.freeBuckets), len(o.buckets))
	}
	if len(o.byWeight)+len(o.freeClasses) != len(o.classes) {
		return fmt.Errorf("%d classes in use and %d free of %d", len(o.byWeight), len(o.freeClasses), len(o.classes))
	}
	return nil
}

// checkTurns asserts that the sums are those of the values, and that steps are what
// they are of.
func (o *Order[V]) checkTurns() error {
	load, weight := int64(0), 0.0
	for _, c := range o.byWeight {
		cl := &o.classes[c]
		weight += cl.span()
		for i := cl.lowest; i != none; i = o.buckets[i].next {
			load += o.buckets[i].load * int64(o.buckets[i].size)
		}
		if cl.takers != cl.size || cl.takers > cl.members {
			return fmt.Errorf("class %v: %d take turns, %d are in buckets, of %d", cl.weight, cl.takers, cl.size, cl.members)
		}
		if want := 1 / (float64(cl.takers) * cl.weight); cl.takers > 0 && cl.step != want {
			return fmt.Errorf("class %v: a step is %v, want %v", cl.weight, cl.step, want)
		}
		if !(cl.turn >= 0) || math.IsInf(cl.turn, 1) {
			return fmt.Errorf("class %v: its turn is %v", cl.weight, cl.turn)
		}
	}
	if load != o.turns.load {
		return fmt.Errorf("the load is %d, %d are counted", load, o.turns.load)
	}
	if sum := o.turns.weight.Value(); math.Abs(sum-weight) > 1e-12*weight {
		return fmt.Errorf("the weight is %v, %v is counted", weight, sum)
	}
	if o.turns.now < 0 || o.turns.drawn && len(o.byWeight) == 0 {
		return fmt.Errorf("the time is %v with %d classes, drawn: %t", o.turns.now, len(o.byWeight), o.turns.drawn)
	}
	return nil
}

// checkTree asserts that the tree holds the classes that have values in buckets, each
// by its key, where there are several classes.
func (o *Order[V]) checkTree() error {
	held := 0
	for _, c := range o.byWeight {
		cl := &o.classes[c]
		want := len(o.byWeight) > 1 && cl.size > 0
		if has := o.tree.has(c); has != want {
			return fmt.Errorf("class %v is in the tree: %t", cl.weight, has)
		}
		if len(o.byWeight) == 1 && c != o.only {
			return fmt.Errorf("class %d is taken as the only one, not %d", o.only, c)
		}
		if !want {
			continue
		}
		held++
		p := o.tree.at[c]
		leaf, key := &o.tree.nodes[p.leaf], o.key(c)
		got := leaf.key(p.index)
		if o.stale == c {
			key.turn = got.turn // it is to be taken up
		}
		if got != key || leaf.child[p.index] != c {
			return fmt.Errorf("class %v stands by %v, not %v", cl.weight, got, key)
		}
	}
	if o.tree.nodes == nil {
		return nil
	}
	return o.tree.check(held)
}

// checkClass returns the number of its values and of its buckets, too.
func (o *Order[V]) checkClass(c int32) (values, buckets int, _ error) {
	var errs []error
	cl := &o.classes[c]
	var onLevel [maxLevels]int
	prev := int32(none)
	for i := cl.lowest; i != none; prev, i = i, o.buckets[i].next {
		b := &o.buckets[i]
		for level := range b.raised {
			onLevel[level]++
		}
		if b.class != c || b.prev != prev || prev != none && o.buckets[prev].load >= b.load {
			errs = append(errs, fmt.Errorf("class %v: bucket %d is out of order", cl.weight, b.load))
		}
		errs = append(errs, o.checkBucket(i))
		values += int(b.size)
		buckets++
	}
	for level, i := range cl.levels {
		last := int32(none)
		for ; i != none; last, i = i, o.nodes[i].next {
			n := &o.nodes[i]
			b := &o.buckets[n.bucket]
			if b.class != c || b.node+int32(level) != i || n.load != b.load || n.prev != last || last != none && o.nodes[last].load >= n.load {
				errs = append(errs, fmt.Errorf("class %v: bucket %d is out of order on level %d", cl.weight, b.load, level))
			}
			onLevel[level]--
		}
	}
	if onLevel != [maxLevels]int{} {
		errs = append(errs, fmt.Errorf("class %v: more or fewer buckets on the levels than have them: %v", cl.weight, onLevel))
	}
	if values != int(cl.size) || cl.members == 0 {
		errs = append(errs, fmt.Errorf("class %v: size %d with %d values", cl.weight, cl.size, values))
	}
	return values, buckets, errors.Join(errs...)
}

func (o *Order[V]) checkBucket(i int32) error {
	b := &o.buckets[i]
	n := int32(0)
	prev := None
	for h := b.head; h != None; prev, h = h, o.slots[h].next {
		n++
		s := &o.slots[h]
		if s.bucket != i || s.prev != prev || prev != None && o.slots[prev].stamp > s.stamp {
			return fmt.Errorf("bucket %d is broken at handle %d", b.load, h)
		}
	}
	if n != b.size || n == 0 || b.tail != prev {
		return fmt.Errorf("bucket %d has size %d with %d values", b.load, b.size, n)
	}
	return nil
}
