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
	left  int32       // the leaf that a class has left last; it may be gone
}

// treePlace is where a class stands; the leaf is none when it does not.
type treePlace struct{ leaf, index int32 }

// reset empties the tree.
func (t *classTree) reset() {
	for i := range t.at {
		t.at[i].leaf = none
	}
	t.nodes = append(t.nodes[:0], treeNode{parent: none, high: never, prev: none, next: none})
	t.spare, t.root, t.left = t.spare[:0], 0, 0
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
	at := t.root
	if p := t.at[c]; p.leaf != none {
		n := &t.nodes[p.leaf]
		if n.low <= k.level && k.level <= n.high {
			old := n.key(p.index)
			n.put(p.index, c, k)
			t.changed(n, old, k)
			return
		}
		t.remove(c)
		at, t.left = t.left, p.leaf
	}
	// Where many have one level, which several leaves may hold, the one that the last
	// has left has room.
	if n := &t.nodes[at]; n.inner || n.size == 0 || n.size == fanout || k.level < n.low || k.level > n.high {
		at = t.leafFor(k.level)
	}
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
