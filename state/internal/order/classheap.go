package order

// classHeap finds the class whose head is to be chosen next: a heap in which each
// node has up to fan children.
type classHeap struct {
	nodes []classNode
	index []int32 // in nodes, by class; none when the class is not there
}

const fan = 4

type classNode struct {
	classKey
	class int32
}

// classKey is what a class is compared by. Of equal scores the older stamp, which
// is its head's, comes first.
type classKey struct {
	score float64
	stamp uint64
}

func (k classKey) before(other classKey) bool {
	return k.score < other.score || k.score == other.score && k.stamp < other.stamp
}

// holdsOnly reports whether c is the only class.
func (h *classHeap) holdsOnly(c int32) bool { return len(h.nodes) == 1 && h.nodes[0].class == c }

// set gives class c its key, and adds it if it is new.
func (h *classHeap) set(c int32, k classKey) {
	for int(c) >= len(h.index) {
		h.index = append(h.index, none)
	}
	i := int(h.index[c])
	if i == none {
		i = len(h.nodes)
		h.nodes = append(h.nodes, classNode{})
	}
	h.fix(i, classNode{k, c})
}

// remove takes class c out.
func (h *classHeap) remove(c int32) {
	i, last := int(h.index[c]), len(h.nodes)-1
	h.index[c] = none
	moved := h.nodes[last]
	h.nodes = h.nodes[:last]
	if i != last {
		h.fix(i, moved)
	}
}

// fix puts node n, which belongs at place i or above or below it, where it belongs.
func (h *classHeap) fix(i int, n classNode) {
	for i > 0 {
		up := (i - 1) / fan
		if !n.before(h.nodes[up].classKey) {
			break
		}
		h.put(i, h.nodes[up])
		i = up
	}
	for {
		first := fan*i + 1
		if first >= len(h.nodes) {
			break
		}
		best := first
		for child := first + 1; child < min(first+fan, len(h.nodes)); child++ {
			if h.nodes[child].before(h.nodes[best].classKey) {
				best = child
			}
		}
		if !h.nodes[best].before(n.classKey) {
			break
		}
		h.put(i, h.nodes[best])
		i = best
	}
	h.put(i, n)
}

func (h *classHeap) put(i int, n classNode) {
	h.nodes[i] = n
	h.index[n.class] = int32(i)
}
