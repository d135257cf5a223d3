package order

import (
	"cmp"
	"math"
	"slices"
)

// fanout is how many entries a node of a classTree has room for. Up to as many
// classes need one node, which is then a plain table.
const fanout = 32

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
// it is. A node goes when it is empty, not before.
type classTree struct {
	nodes []treeNode
	spare []int32 // nodes not in use
	root  int32
	at    []treePlace // by class
}

// treePlace is where a class stands; the leaf is none when it does not.
type treePlace struct{ leaf, index int32 }

// treeEntry is a class of a leaf, or a node below an inner one. There the level is
// one that no class of the child is below, and no class of the child before is above;
// nobody looks at the first one's. The entries of an inner node are in ascending order
// of it.
type treeEntry struct {
	classKey
	child int32
}

type treeNode struct {
	entries    [fanout]treeEntry
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
	least := uint64(never)
	r := &t.nodes[t.root]
	for i := range r.entries[:r.size] {
		least = min(least, r.entries[i].after)
	}
	return least
}

// next returns the class with the least turn of those whose level is below limit,
// none without one.
func (t *classTree) next(limit uint64) int32 {
	best, turn := int32(none), uint64(never)
	n := &t.nodes[t.root]
	for n.inner {
		below := int32(1)
		for below < n.size && n.entries[below].level < limit {
			below++
		}
		// All that is below the entries but the last is below limit.
		had := turn
		for i := range n.entries[:below-1] {
			turn = min(turn, n.entries[i].turn)
		}
		if turn < had {
			best = n.childWith(turn)
		}
		n = &t.nodes[n.entries[below-1].child]
	}
	had := turn
	for i := range n.entries[:n.size] {
		e := &n.entries[i]
		at := e.turn
		if e.level >= limit {
			at = never
		}
		turn = min(turn, at)
	}
	if turn == had {
		return t.follow(best, turn)
	}
	for i := range n.entries[:n.size] {
		if e := &n.entries[i]; e.turn == turn && e.level < limit {
			return e.child
		}
	}
	return none
}

// childWith returns the first child with the turn.
func (n *treeNode) childWith(turn uint64) int32 {
	i := 0
	for n.entries[i].turn != turn {
		i++
	}
	return n.entries[i].child
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
			old := n.entries[p.index].classKey
			n.entries[p.index].classKey = k
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
	n.entries[n.size] = treeEntry{k, c}
	t.at[c] = treePlace{at, n.size}
	n.size++
	t.changed(n, classKey{never, never, never}, k)
}

// leafFor returns a leaf whose range has the level.
func (t *classTree) leafFor(level uint64) int32 {
	at := t.root
	for n := &t.nodes[at]; n.inner; n = &t.nodes[at] {
		i := int32(1)
		for i < n.size && n.entries[i].level <= level {
			i++
		}
		at = n.entries[i-1].child
	}
	return at
}

// remove takes class c out.
func (t *classTree) remove(c int32) {
	p := t.at[c]
	t.at[c].leaf = none
	n := &t.nodes[p.leaf]
	old := n.entries[p.index].classKey
	n.size--
	if last := n.size; p.index < last {
		n.entries[p.index] = n.entries[last]
		t.at[n.entries[last].child].index = p.index
	}
	if n.size == 0 && n.parent != none {
		t.free(p.leaf)
		return
	}
	t.changed(n, old, classKey{never, never, never})
}

// changed brings the entries above node n in line, in which an entry has become
// another; one that is never stands for none.
func (t *classTree) changed(n *treeNode, old, k classKey) {
	for n.parent != none {
		up := &t.nodes[n.parent]
		e := &up.entries[n.index]
		was := e.classKey
		if k.after <= was.after {
			e.after = k.after
		} else if old.after == was.after {
			e.after = n.leastAfter()
		}
		if k.turn <= was.turn {
			e.turn = k.turn
		} else if old.turn == was.turn {
			e.turn = n.leastTurn()
		}
		if e.classKey == was {
			return
		}
		old, k, n = was, e.classKey, up
	}
}

func (n *treeNode) leastAfter() uint64 {
	least := uint64(never)
	for i := range n.entries[:n.size] {
		least = min(least, n.entries[i].after)
	}
	return least
}

func (n *treeNode) leastTurn() uint64 {
	least := uint64(never)
	for i := range n.entries[:n.size] {
		least = min(least, n.entries[i].turn)
	}
	return least
}

// split gives the upper half of the full node at to a new one, which it returns.
func (t *classTree) split(at int32) int32 {
	if t.nodes[at].parent == none {
		root := t.newNode()
		t.nodes[root] = treeNode{inner: true, parent: none}
		t.open(root, 0, treeEntry{child: at})
		t.root = root
	}
	if up := t.nodes[at].parent; t.nodes[up].size == fanout {
		t.split(up)
	}
	other := t.newNode()
	n, o := &t.nodes[at], &t.nodes[other]
	*o = treeNode{inner: n.inner, prev: none, next: none}
	if !n.inner {
		slices.SortFunc(n.entries[:], func(a, b treeEntry) int { return cmp.Compare(a.level, b.level) })
	}
	o.size = int32(copy(o.entries[:], n.entries[fanout/2:]))
	n.size -= o.size
	for _, half := range []int32{at, other} {
		h := &t.nodes[half]
		for i := range h.size {
			if c := h.entries[i].child; h.inner {
				t.nodes[c].parent, t.nodes[c].index = half, i
			} else {
				t.at[c] = treePlace{half, i}
			}
		}
	}
	least := o.entries[0].level
	if !n.inner {
		o.low, o.high, n.high = least, n.high, least
		o.prev, o.next, n.next = at, n.next, other
		if o.next != none {
			t.nodes[o.next].prev = other
		}
	}
	e := &t.nodes[n.parent].entries[n.index]
	e.after, e.turn = n.leastAfter(), n.leastTurn()
	t.open(n.parent, n.index+1, treeEntry{classKey{least, o.leastAfter(), o.leastTurn()}, other})
	return other
}

// open puts an entry into the inner node at, as its i-th.
func (t *classTree) open(at, i int32, e treeEntry) {
	n := &t.nodes[at]
	copy(n.entries[i+1:n.size+1], n.entries[i:n.size])
	n.entries[i] = e
	n.size++
	t.reindex(at, i)
}

// reindex tells the children of the inner node at, from the i-th on, where they are.
func (t *classTree) reindex(at, i int32) {
	for n := &t.nodes[at]; i < n.size; i++ {
		c := &t.nodes[n.entries[i].child]
		c.parent, c.index = at, i
	}
}

// free takes the empty leaf out, and the nodes above that have nothing else. Its range
// goes to the leaf before, in the next node above that has more, or to the one after.
func (t *classTree) free(leaf int32) {
	l := &t.nodes[leaf]
	if l.prev != none {
		t.nodes[l.prev].next = l.next
	}
	if l.next != none {
		t.nodes[l.next].prev = l.prev
	}
	n := l
	at := leaf
	for t.nodes[n.parent].size == 1 {
		t.spare = append(t.spare, at)
		at = n.parent
		n = &t.nodes[at]
	}
	t.spare = append(t.spare, at)
	up := &t.nodes[n.parent]
	i, old := n.index, up.entries[n.index].classKey
	if i > 0 {
		t.nodes[l.prev].high = l.high
	} else {
		t.nodes[l.next].low, up.entries[1].level = l.low, old.level
	}
	copy(up.entries[i:], up.entries[i+1:up.size])
	up.size--
	t.reindex(n.parent, i)
	t.changed(up, old, classKey{never, never, never})
	for r := &t.nodes[t.root]; r.inner && r.size == 1; r = &t.nodes[t.root] {
		t.spare = append(t.spare, t.root)
		t.root = r.entries[0].child
		t.nodes[t.root].parent = none
	}
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
