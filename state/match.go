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
	for i, e := range join {
		if nodes[i] == nil {
			take(i, r.ledger.fullMatch(e, free))
		}
	}
	var partial []candidate
	for i, e := range join {
		if nodes[i] == nil {
			partial = r.ledger.candidates(partial, i, e, free)
		}
	}
	slices.SortFunc(partial, compareCandidates)
	for _, c := range partial {
		take(c.index, c.node)
	}
	return nodes
}

// compatible reports whether the node may be the endpoint's.
func (n *node) compatible(e Endpoint) bool { return n.id == "" || e.ID == "" || n.id == e.ID }

// fullMatch returns the most loaded free node with the same addresses as e.
func (l *Ledger) fullMatch(e Endpoint, free func(*node) bool) *node {
	var known []*node // of the address that tells most
	for i, a := range e.Addrs {
		if at := l.byAddr[a]; i == 0 || len(at) < len(known) {
			known = at
		}
	}
	var best *node
	for _, n := range known {
		if slices.Equal(n.addrs, e.Addrs) && n.compatible(e) && free(n) &&
			(best == nil || n.inFlight > best.inFlight || n.inFlight == best.inFlight && n.number < best.number) {
			best = n
		}
	}
	return best
}

// candidate is a node that shares some addresses with an endpoint of an update.
type candidate struct {
	index  int // of the endpoint
	node   *node
	shared int // addresses
}

// compareCandidates puts the better match first: the more loaded node, then the
// larger overlap, then whichever comes first.
func compareCandidates(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(b.node.inFlight, a.node.inFlight),
		cmp.Compare(b.shared, a.shared),
		cmp.Compare(a.index, b.index),
		cmp.Compare(a.node.number, b.node.number),
	)
}

// crowded is the number of nodes above which an address is a gateway's and does
// not tell one endpoint from another. It also bounds what an update costs.
const crowded = 64

// candidates appends the free nodes that share an address with endpoint i and do
// not have another id.
func (l *Ledger) candidates(all []candidate, i int, e Endpoint, free func(*node) bool) []candidate {
	at := map[*node]int{}
	for _, a := range e.Addrs {
		known := l.byAddr[a]
		if len(known) > crowded {
			continue
		}
		for _, n := range known {
			if !n.compatible(e) || !free(n) {
				continue
			}
			if _, ok := at[n]; !ok {
				at[n] = len(all)
				all = append(all, candidate{index: i, node: n})
			}
			all[at[n]].shared++
		}
	}
	return all
}
