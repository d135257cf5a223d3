package state

import (
	"cmp"
	"slices"
)

// match finds the known node of each endpoint by the rules of [Roster.Update];
// nil where a new one is needed. A node that r keeps a member on is not free.
func (r *Roster) match(join []Endpoint) []*node {
	nodes := make([]*node, len(join))
	if len(r.ledger.nodes) == 0 {
		return nodes
	}
	taken := map[*node]struct{}{}
	free := func(n *node) bool {
		if _, ok := taken[n]; ok {
			return false
		}
		m := n.memberOf(r)
		return m == nil || m.leaves
	}
	take := func(i int, n *node) {
		if n != nil && nodes[i] == nil && free(n) {
			nodes[i] = n
			taken[n] = struct{}{}
		}
	}
	for i, e := range join {
		if e.ID != "" {
			take(i, r.ledger.byID[e.ID])
		}
	}
	var all []candidate
	for i, e := range join {
		if nodes[i] == nil {
			all = r.ledger.candidates(all, i, e)
		}
	}
	slices.SortFunc(all, compareCandidates)
	for _, c := range all {
		take(c.index, c.node)
	}
	return nodes
}

// candidate is a node that shares addresses with an endpoint of an update.
type candidate struct {
	index  int // of the endpoint
	addrs  int // that the endpoint has
	node   *node
	shared int // addresses
}

func (c candidate) full() bool {
	return c.shared == len(c.node.addrs) && c.shared == c.addrs
}

// compareCandidates puts the better match first: a full one, then the more
// loaded node, then the larger overlap, then whichever comes first.
func compareCandidates(a, b candidate) int {
	if a.full() != b.full() {
		if a.full() {
			return -1
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(b.node.inFlight, a.node.inFlight),
		cmp.Compare(b.shared, a.shared),
		cmp.Compare(a.index, b.index),
		cmp.Compare(a.node.number, b.node.number),
	)
}

// candidates appends the nodes that share an address with endpoint i and do not
// have another id.
func (l *Ledger) candidates(all []candidate, i int, e Endpoint) []candidate {
	first := len(all)
	for _, a := range e.Addrs {
		for _, n := range l.byAddr[a] {
			if n.id != "" && e.ID != "" && n.id != e.ID {
				continue
			}
			at := slices.IndexFunc(all[first:], func(c candidate) bool { return c.node == n })
			if at < 0 {
				at = len(all) - first
				all = append(all, candidate{index: i, addrs: len(e.Addrs), node: n})
			}
			all[first+at].shared++
		}
	}
	return all
}
