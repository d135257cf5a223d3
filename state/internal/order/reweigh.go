package order

// SetWeight changes the weight of h, which must be above 0 and may be suspended. It
// keeps its place: it waits since when it waited. One that is alone in its class
// takes along how much of the way to its turn is left.
func (o *Order[V]) SetWeight(h Handle, weight float64) {
	s := &o.slots[h]
	if o.classes[s.class].members > 1 && o.nearClass(weight) == s.class {
		return
	}
	load, stamp := o.changeClass(h, weight)
	if load >= 0 {
		o.insertByStamp(h, o.bucketFor(s.class, load), stamp)
		o.update(s.class)
	}
}

// Renew is SetWeight for one that is as new: it takes a random place among its equals.
func (o *Order[V]) Renew(h Handle, weight float64) {
	s := &o.slots[h]
	if o.classes[s.class].members > 1 && o.nearClass(weight) == s.class {
		if s.bucket != none {
			load := o.buckets[s.bucket].load
			o.detach(h)
			o.insertRandom(h, o.bucketFor(s.class, load))
			o.update(s.class)
		}
		return
	}
	load, _ := o.changeClass(h, weight)
	if load >= 0 {
		o.insertRandom(h, o.bucketFor(s.class, load))
		o.update(s.class)
	}
}

// changeClass takes h out of its bucket and makes it a member of the class for another
// weight. It returns the load, below 0 when h is suspended, and the stamp that h had.
func (o *Order[V]) changeClass(h Handle, weight float64) (load int64, stamp uint64) {
	s := &o.slots[h]
	was := &o.classes[s.class]
	alone, wait, from := was.members == 1, max(0, was.turn-o.turns.now)*was.weight, o.turns
	placed := s.bucket != none
	load, stamp = -1, s.stamp
	if placed {
		load = o.buckets[s.bucket].load
		o.detach(h)
		o.resize(s.class, -1)
	}
	o.delist(h)
	o.turns.now, o.turns.drawn = from.now, from.drawn // an order that is empty now is no new one
	c := o.enlist(h, weight)
	if placed {
		o.resize(c, 1)
	}
	if cl := &o.classes[c]; alone && cl.members == 1 {
		cl.turn = o.turns.now + wait/cl.weight
	}
	return load, stamp
}

// insertByStamp puts h into bucket b behind all that have waited as long.
func (o *Order[V]) insertByStamp(h Handle, b int32, stamp uint64) {
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
}
