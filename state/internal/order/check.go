package order

import (
	"errors"
	"fmt"
	"math"
)

// Check returns what is wrong in the order, nil when all invariants hold. want
// tells the weight and the load that a value is meant to have. It costs O(n): it
// is for tests.
func (o *Order[V]) Check(want func(V) (weight float64, load int64)) error {
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
	if inBuckets != o.used {
		errs = append(errs, fmt.Errorf("%d values in buckets, %d in use", inBuckets, o.used))
	}
	errs = append(errs, o.checkHandles(want), o.checkFree(buckets), o.checkTree())
	return errors.Join(errs...)
}

// checkHandles asserts that each handle is used or free, once, and that those
// used are where their weight and load belong.
func (o *Order[V]) checkHandles(want func(V) (weight float64, load int64)) error {
	if len(o.handles) != len(o.slots) {
		return fmt.Errorf("%d handles for %d slots", len(o.handles), len(o.slots))
	}
	for i, h := range o.handles {
		s := &o.slots[h]
		if s.index != int32(i) {
			return fmt.Errorf("handle %d is not at its index %d", h, s.index)
		}
		if used := i < o.used; used != (s.bucket != none) {
			return fmt.Errorf("handle %d in bucket %d is used: %t", h, s.bucket, used)
		}
		if s.bucket == none {
			continue
		}
		weight, load := want(s.value)
		b := &o.buckets[s.bucket]
		if b.load != load {
			return fmt.Errorf("handle %d with load %d stands at %d", h, load, b.load)
		}
		if w := o.classes[b.class].weight; math.Abs(weight-w) > nearWeight*w {
			return fmt.Errorf("handle %d with weight %v stands in class %v", h, weight, w)
		}
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

// checkTree asserts that the tree holds the classes, each by its key, and plays
// all matches. Of equals that wait equally long any may have won. An only class is
// not kept up to date.
func (o *Order[V]) checkTree() error {
	t := &o.tree
	if t.size != len(o.byWeight) {
		return fmt.Errorf("%d classes in use, %d in the tree", len(o.byWeight), t.size)
	}
	if t.size > 0 && o.classes[t.best].size == 0 {
		return fmt.Errorf("class %d is best and empty", t.best)
	}
	if t.size < 2 {
		return nil
	}
	for i, score := range t.scores[0] {
		want := classKey{score: math.Inf(1)}
		if i < len(o.classes) && o.classes[i].size > 0 {
			want = o.key(int32(i))
		}
		if score != want.score || !math.IsInf(score, 1) && t.stamps[i] != want.stamp {
			return fmt.Errorf("leaf %d has key {%v %d}, not %v", i, score, t.stamps[i], want)
		}
	}
	for k := 1; k < len(t.scores); k++ {
		for g := range t.scores[k] {
			won, score := t.play(k-1, g)
			same := won == t.winners[k][g] || math.IsInf(score, 1) || t.stamps[won] == t.stamps[t.winners[k][g]]
			if score != t.scores[k][g] || !same {
				return fmt.Errorf("match %d of level %d was won by leaf %d with %v", g, k, t.winners[k][g], t.scores[k][g])
			}
		}
	}
	if root := t.winners[len(t.winners)-1][0]; root != t.best {
		return fmt.Errorf("class %d is best, %d has won", t.best, root)
	}
	return nil
}

// checkClass returns the number of its values and of its buckets, too.
func (o *Order[V]) checkClass(c int32) (values, buckets int, _ error) {
	var errs []error
	cl := &o.classes[c]
	var onLevel [maxLevels]int
	prev := int32(none)
	for i := cl.lowest; i != none; prev, i = i, o.buckets[i].next {
		b := &o.buckets[i]
		for level := range b.forward {
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
		for ; i != none; last, i = i, o.buckets[i].forward[level].next {
			b := &o.buckets[i]
			if b.class != c || b.forward[level].prev != last || last != none && o.buckets[last].load >= b.load {
				errs = append(errs, fmt.Errorf("class %v: bucket %d is out of order on level %d", cl.weight, b.load, level))
			}
			onLevel[level]--
		}
	}
	if onLevel != [maxLevels]int{} {
		errs = append(errs, fmt.Errorf("class %v: more or fewer buckets on the levels than have them: %v", cl.weight, onLevel))
	}
	if values != cl.size || values == 0 {
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
