package state

import (
	"cmp"
	"slices"
)

// match finds the known endpoint of each endpoint by the rules of [EndpointSet.Update];
// nil where a new one is needed. An endpoint that r keeps a member on is not free.
func (r *EndpointSet) match(join []Identity) []*endpoint {
	nodes := make([]*endpoint, len(join))
	if len(r.ledger.endpoints) == 0 {
		return nodes
	}
	taken := map[*endpoint]struct{}{}
	free := func(n *endpoint) bool {
		if _, ok := taken[n]; ok {
			return false
		}
		m := n.memberOf(r)
		return m == nil || m.leaves
	}
	take := func(i int, n *endpoint) {
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
		take(c.index, c.endpoint)
	}
	return nodes
}

// compatible reports whether the endpoint may be the endpoint's.
func (n *endpoint) compatible(e Identity) bool { return n.id == "" || e.ID == "" || n.id == e.ID }

// fullMatch returns the most loaded free endpoint with the same addresses as e.
func (l *Ledger) fullMatch(e Identity, free func(*endpoint) bool) *endpoint {
	var known []*endpoint // of the address that tells most
	for i, a := range e.Addrs {
		if at := l.byAddr[a]; i == 0 || len(at) < len(known) {
			known = at
		}
	}
	var best *endpoint
	for _, n := range known {
		if slices.Equal(n.addrs, e.Addrs) && n.compatible(e) && free(n) &&
			(best == nil || n.inFlight > best.inFlight || n.inFlight == best.inFlight && n.number < best.number) {
			best = n
		}
	}
	return best
}

// candidate is an endpoint that shares some addresses with an endpoint of an update.
type candidate struct {
	index    int // of the endpoint
	endpoint *endpoint
	shared   int // addresses
}

// compareCandidates puts the better match first: the more loaded endpoint, then the
// larger overlap, then whichever comes first.
func compareCandidates(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(b.endpoint.inFlight, a.endpoint.inFlight),
		cmp.Compare(b.shared, a.shared),
		cmp.Compare(a.index, b.index),
		cmp.Compare(a.endpoint.number, b.endpoint.number),
	)
}

// crowded is the number of endpoints above which an address is a gateway's and does
// not tell one endpoint from another. It also bounds what an update costs.
const crowded = 64

// candidates appends the free endpoints that share an address with endpoint i and do
// not have another id.
func (l *Ledger) candidates(all []candidate, i int, e Identity, free func(*endpoint) bool) []candidate {
	at := map[*endpoint]int{}
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
				all = append(all, candidate{index: i, endpoint: n})
			}
			all[at[n]].shared++
		}
	}
	return all
}
