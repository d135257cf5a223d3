package order

import "math"

// fanout is how many entries a node of a classTree has room for. Up to as many
// classes need one node, which is then a plain table.
const fanout = 48

// classKey is what the choice among classes looks at. The numbers are not below 0,
// so their bits compare as they do, which is faster.
type classKey struct {
	level uint64 // load over weight
	after uint64 // the same with one more
	turn  uint64 // virtual time of the class's turn
}

func keyOf(level, after, turn float64) classKey {
	return classKey{math.Float64bits(level), math.Float64bits(after), math.Float64bits(turn)}
}

// never is beyond every level and turn.
const never = math.MaxUint64

// classTree keeps classes by level, so that the one with the least turn below a
// level is found in O(log k) of k classes: a B+ tree (R. Bayer and E. McCreight,
// 1972) whose entries know the least of what is below them. Each leaf has a range of
// levels and its classes in no order. A class that moves within a range stays where
// it is.
type classTree struct {
	nodes []treeNode
	spare []int32 // nodes not in use
	root  int32
	at    []treePlace // by class
}

// treePlace is where a class stands; the leaf is none when it does not.
type treePlace struct{ leaf, index int32 }

// treeNode has an array for each part of its entries: what is searched lies close
// together. An entry is a class of a leaf, or a node below an inner one. There the
// level is one that no class of the child is below, and no class of the child before
// is above; nobody looks at the first one's. The entries of an inner node are in
// ascending order of it.
type treeNode struct {
	level      [fanout]uint64
	turn       [fanout]uint64
	after      [fanout]uint64
	child      [fanout]int32
	size       int32
	parent     int32 // none at the root
	index      int32 // in the parent
	inner      bool
	low, high  uint64 // a leaf's range, both ends included
	prev, next int32  // the neighbouring leaves
}

// reset empties the tree.
func (t *classTree) reset() {
	for i := range t.at {
		t.at[i].leaf = none
	}
	t.nodes = append(t.nodes[:0], treeNode{parent: none, high: never, prev: none, next: none})
	t.spare, t.root = t.spare[:0], 0
}

func (t *classTree) has(c int32) bool { return int(c) < len(t.at) && t.at[c].leaf != none }

// leastAfter returns the least after of all classes, never without one.
func (t *classTree) leastAfter() uint64 {
	r := &t.nodes[t.root]
	return least(r.after[:r.size])
}

// next returns the class with the least turn of those whose level is below limit,
// none without one.
func (t *classTree) next(limit uint64) int32 {
	best, turn := int32(none), uint64(never)
	n := &t.nodes[t.root]
	for n.inner {
		below := int32(1)
		for below < n.size && n.level[below] < limit {
			below++
		}
		// All that is below the entries but the last is below limit.
		if at := least(n.turn[:below-1]); at < turn {
			turn = at
			best = n.childWith(turn)
		}
		n = &t.nodes[n.child[below-1]]
	}
	had := turn
	turns := n.turn[:n.size]
	for i, level := range n.level[:len(turns)] {
		at := turns[i]
		if level >= limit {
			at = never
		}
		turn = min(turn, at)
	}
	if turn == had {
		return t.follow(best, turn)
	}
	i := 0
	for turns[i] != turn || n.level[i] >= limit {
		i++
	}
	return n.child[i]
}

// childWith returns the first child with the turn.
func (n *treeNode) childWith(turn uint64) int32 {
	i := 0
	for n.turn[i] != turn {
		i++
	}
	return n.child[i]
}

// follow returns the class below node at that has the turn, which is the least there.
func (t *classTree) follow(at int32, turn uint64) int32 {
	if at == none {
		return none
	}
	for n := &t.nodes[at]; ; n = &t.nodes[at] {
		if at = n.childWith(turn); !n.inner {
			return at
		}
	}
}

// set puts class c where its key belongs.
func (t *classTree) set(c int32, k classKey) {
	for int(c) >= len(t.at) {
		t.at = append(t.at, treePlace{leaf: none})
	}
	if p := t.at[c]; p.leaf != none {
		n := &t.nodes[p.leaf]
		if n.low <= k.level && k.level <= n.high {
			old := n.key(p.index)
			n.put(p.index, c, k)
			t.changed(n, old, k)
			return
		}
		t.remove(c)
	}
	at := t.leafFor(k.level)
	if t.nodes[at].size == fanout {
		other := t.split(at)
		if k.level > t.nodes[other].low {
			at = other
		}
	}
	n := &t.nodes[at]
	n.put(n.size, c, k)
	t.at[c] = treePlace{at, n.size}
	n.size++
	t.changed(n, classKey{never, never, never}, k)
}

// leafFor returns a leaf whose range has the level.
func (t *classTree) leafFor(level uint64) int32 {
	at := t.root
	for n := &t.nodes[at]; n.inner; n = &t.nodes[at] {
		i := int32(1)
		for i < n.size && n.level[i] <= level {
			i++
		}
		at = n.child[i-1]
	}
	return at
}

// remove takes class c out.
func (t *classTree) remove(c int32) {
	p := t.at[c]
	t.at[c].leaf = none
	n := &t.nodes[p.leaf]
	old := n.key(p.index)
	n.size--
	if last := n.size; p.index < last {
		n.put(p.index, n.child[last], n.key(last))
		t.at[n.child[last]].index = p.index
	}
	t.changed(n, old, classKey{never, never, never})
	t.thin(p.leaf)
}

// changed brings the entries above node n in line, in which an entry has become
// another; one that is never stands for none.
func (t *classTree) changed(n *treeNode, old, k classKey) {
	for n.parent != none {
		up := &t.nodes[n.parent]
		i := n.index
		wasAfter, wasTurn := up.after[i], up.turn[i]
		after, turn := wasAfter, wasTurn
		if k.after <= after {
			after = k.after
		} else if old.after == after {
			after = least(n.after[:n.size])
		}
		if k.turn <= turn {
			turn = k.turn
		} else if old.turn == turn {
			turn = least(n.turn[:n.size])
		}
		if after == wasAfter && turn == wasTurn {
			return
		}
		up.after[i], up.turn[i] = after, turn
		old.after, old.turn, k.after, k.turn = wasAfter, wasTurn, after, turn
		n = up
	}
}

// least returns the least of some numbers, never without one.
func least(of []uint64) uint64 {
	m := uint64(never)
	for _, v := range of {
		m = min(m, v)
	}
	return m
}

func (n *treeNode) key(i int32) classKey { return classKey{n.level[i], n.after[i], n.turn[i]} }

func (n *treeNode) put(i, child int32, k classKey) {
	n.level[i], n.after[i], n.turn[i], n.child[i] = k.level, k.after, k.turn, child
}

// least returns what an entry above says of n.
func (n *treeNode) least(level uint64) classKey {
	return classKey{level, least(n.after[:n.size]), least(n.turn[:n.size])}
}

// split gives the upper half of the full node at to a new one, which it returns.
func (t *classTree) split(at int32) int32 {
	if t.nodes[at].parent == none {
		root := t.newNode()
		t.nodes[root] = treeNode{inner: true, parent: none}
		t.open(root, 0, at, classKey{})
		t.root = root
	}
	if up := t.nodes[at].parent; t.nodes[up].size == fanout {
		t.split(up)
	}
	other := t.newNode()
	n, o := &t.nodes[at], &t.nodes[other]
	*o = treeNode{inner: n.inner, prev: none, next: none}
	if !n.inner {
		n.sort()
	}
	for i := int32(fanout / 2); i < fanout; i++ {
		o.put(o.size, n.child[i], n.key(i))
		o.size++
	}
	n.size -= o.size
	if !n.inner {
		t.reindex(at, 0)
	}
	t.reindex(other, 0)
	low := o.level[0]
	if !n.inner {
		o.low, o.high, n.high = low, n.high, low
		o.prev, o.next, n.next = at, n.next, other
		if o.next != none {
			t.nodes[o.next].prev = other
		}
	}
	up := &t.nodes[n.parent]
	up.put(n.index, at, n.least(up.level[n.index]))
	t.open(n.parent, n.index+1, other, o.least(low))
	return other
}

// sort puts the entries of a leaf in ascending order of level.
func (n *treeNode) sort() {
	for i := int32(1); i < n.size; i++ {
		c, k := n.child[i], n.key(i)
		j := i
		for ; j > 0 && n.level[j-1] > k.level; j-- {
			n.put(j, n.child[j-1], n.key(j-1))
		}
		n.put(j, c, k)
	}
}

// open puts a child into the inner node at, as its i-th.
func (t *classTree) open(at, i, child int32, k classKey) {
	n := &t.nodes[at]
	for j := n.size; j > i; j-- {
		n.put(j, n.child[j-1], n.key(j-1))
	}
	n.put(i, child, k)
	n.size++
	t.reindex(at, i)
}

// reindex tells the entries of node at, from the i-th on, where they are.
func (t *classTree) reindex(at, i int32) {
	for n := &t.nodes[at]; i < n.size; i++ {
		if c := n.child[i]; n.inner {
			t.nodes[c].parent, t.nodes[c].index = at, i
		} else {
			t.at[c] = treePlace{at, i}
		}
	}
}

// thin merges node at with its sibling when it is nearly empty and there is room. A
// node that has no sibling may be empty.
func (t *classTree) thin(at int32) {
	for t.nodes[at].parent != none {
		n := &t.nodes[at]
		up := &t.nodes[n.parent]
		if n.size >= fanout/4 || up.size == 1 {
			return
		}
		i := n.index
		if i+1 == up.size {
			i-- // the last one goes into the one before
		}
		if l, r := &t.nodes[up.child[i]], &t.nodes[up.child[i+1]]; n.size > 0 && l.size+r.size > fanout*3/4 {
			return
		}
		at = n.parent
		t.merge(at, i)
		if at == t.root && up.size == 1 {
			t.spare = append(t.spare, at)
			t.root = up.child[0]
			t.nodes[t.root].parent = none
			return
		}
	}
}

// merge moves the entries of a child of node at to the child before, the i-th.
func (t *classTree) merge(at, i int32) {
	up := &t.nodes[at]
	left, right := up.child[i], up.child[i+1]
	l, r := &t.nodes[left], &t.nodes[right]
	size := l.size
	for j := range r.size {
		l.put(l.size, r.child[j], r.key(j))
		l.size++
	}
	if l.inner {
		l.level[size] = up.level[i+1]
	} else {
		l.high, l.next = r.high, r.next
		if l.next != none {
			t.nodes[l.next].prev = left
		}
	}
	t.reindex(left, size)
	up.put(i, left, l.least(up.level[i]))
	up.size--
	for j := i + 1; j < up.size; j++ {
		up.put(j, up.child[j+1], up.key(j+1))
	}
	t.reindex(at, i+1)
	t.spare = append(t.spare, right)
}

func (t *classTree) newNode() int32 {
	if last := len(t.spare) - 1; last >= 0 {
		at := t.spare[last]
		t.spare = t.spare[:last]
		return at
	}
	t.nodes = append(t.nodes, treeNode{})
	return int32(len(t.nodes) - 1)
}
