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
	var partial []candidate
	for i, e := range join {
		if nodes[i] != nil {
			continue
		}
		all := r.ledger.candidates(i, e)
		for _, c := range all {
			if c.shared == len(c.node.addrs) && c.shared == len(e.Addrs) {
				take(i, c.node)
			}
		}
		if nodes[i] == nil {
			partial = append(partial, all...)
		}
	}
	slices.SortStableFunc(partial, mostLoaded)
	for _, c := range partial {
		take(c.endpoint, c.node)
	}
	return nodes
}

// candidate is a node that shares addresses with an endpoint of an update.
type candidate struct {
	endpoint int    // index in the update
	first    string // the endpoint's first address
	node     *node
	shared   int // addresses
}

// mostLoaded orders candidates; where load and overlap are equal, the result
// must not depend on the order in which a resolver lists its endpoints.
func mostLoaded(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(b.node.inFlight, a.node.inFlight),
		cmp.Compare(b.shared, a.shared),
		cmp.Compare(a.first, b.first),
	)
}

// candidates returns the nodes that share an address with e and do not have
// another id, most loaded first.
func (l *Ledger) candidates(i int, e Endpoint) []candidate {
	var found []candidate
	for _, a := range e.Addrs {
		for _, n := range l.byAddr[a] {
			if n.id != "" && e.ID != "" && n.id != e.ID {
				continue
			}
			at := slices.IndexFunc(found, func(c candidate) bool { return c.node == n })
			if at < 0 {
				at = len(found)
				found = append(found, candidate{endpoint: i, first: e.Addrs[0], node: n})
			}
			found[at].shared++
		}
	}
	slices.SortStableFunc(found, mostLoaded)
	return found
}
