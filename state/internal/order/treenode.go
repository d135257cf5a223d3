package order

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
		n.halve()
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

// halve puts the upper half of a full leaf's entries, by level, behind the lower, the
// least of it first (C. A. R. Hoare's FIND, 1961).
func (n *treeNode) halve() {
	for from, to := int32(0), int32(fanout-1); from < to; {
		pivot := n.level[(from+to)/2]
		i, j := from, to
		for i <= j {
			for n.level[i] < pivot {
				i++
			}
			for n.level[j] > pivot {
				j--
			}
			if i <= j {
				c, k := n.child[i], n.key(i)
				n.put(i, n.child[j], n.key(j))
				n.put(j, c, k)
				i++
				j--
			}
		}
		switch {
		case fanout/2 <= j:
			to = j
		case fanout/2 >= i:
			from = i
		default:
			return
		}
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
	r.size = 0 // nobody looks into it
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
