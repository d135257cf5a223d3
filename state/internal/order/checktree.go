package order

import (
	"errors"
	"fmt"
)

// check asserts that the tree of so many classes is in order.
func (t *classTree) check(classes int) error {
	at := t.root
	for t.nodes[at].inner {
		at = t.nodes[at].child[0]
	}
	k := &treeCheck{classTree: t, leaf: at, prev: none}
	if t.nodes[t.root].parent != none {
		return errors.New("the root has a parent")
	}
	if _, err := k.check(t.root, 0, never); err != nil {
		return err
	}
	if k.classes != classes || k.leaf != none || k.nodes+len(t.spare) != len(t.nodes) {
		return fmt.Errorf("%d of %d classes in the tree, %d of %d nodes, %d free", k.classes, classes, k.nodes, len(t.nodes), len(t.spare))
	}
	return nil
}

// treeCheck is a walk through a tree.
type treeCheck struct {
	*classTree
	leaf, prev     int32 // the leaf to come next, and the one before
	classes, nodes int
}

// check checks what is below node at, whose levels are to be in a range, and returns
// the least of it.
func (k *treeCheck) check(at int32, low, high uint64) (classKey, error) {
	k.nodes++
	n := &k.classTree.nodes[at]
	if !n.inner {
		return k.checkLeaf(at, low, high)
	}
	if n.size < 1 || n.parent == none && n.size < 2 {
		return classKey{}, fmt.Errorf("node %d has %d children", at, n.size)
	}
	for i := range n.size {
		from, to := n.level[i], high
		if i == 0 {
			from = low
		}
		if i+1 < n.size {
			to = n.level[i+1]
		}
		if c := &k.classTree.nodes[n.child[i]]; c.parent != at || c.index != i || from < low || to < from || to > high {
			return classKey{}, fmt.Errorf("node %d is not in order at child %d", at, i)
		}
		got, err := k.check(n.child[i], from, to)
		if err != nil {
			return classKey{}, err
		}
		if got.after != n.after[i] || got.turn != n.turn[i] {
			return classKey{}, fmt.Errorf("node %d does not know the least of child %d", at, i)
		}
	}
	return n.least(low), nil
}

func (k *treeCheck) checkLeaf(at int32, low, high uint64) (classKey, error) {
	n := &k.classTree.nodes[at]
	if at != k.leaf || n.prev != k.prev || n.low != low || n.high != high {
		return classKey{}, fmt.Errorf("leaf %d with %d classes is not in order", at, n.size)
	}
	k.prev, k.leaf = at, n.next
	k.classes += int(n.size)
	for i := range n.size {
		if n.level[i] < low || n.level[i] > high || k.at[n.child[i]] != (treePlace{at, i}) {
			return classKey{}, fmt.Errorf("class %d is at a wrong place in leaf %d", n.child[i], at)
		}
	}
	return n.least(low), nil
}
