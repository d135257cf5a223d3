package state

import (
	"cmp"
	"slices"
)

// Identity is what an endpoint set is told of an endpoint: the addresses under which
// it is reached, at least one, in any order, and an explicit identity, if it has
// one.
type Identity struct {
	ID    string
	Addrs []string
}

// match finds the known entry of each endpoint by the rules of [EndpointSet.Update],
// nil where a new one is needed. An entry that r keeps a member on is not free.
func (r *EndpointSet) match(join []Identity) []*endpoint {
	known := make([]*endpoint, len(join))
	if len(r.ledger.endpoints) == 0 {
		return known
	}
	r.ledger.updates++
	free := func(n *endpoint) bool {
		if n.takenIn == r.ledger.updates {
			return false
		}
		m := n.memberOf(r)
		return m == nil || m.leaving
	}
	take := func(i int, n *endpoint) {
		if n != nil && known[i] == nil && free(n) {
			known[i] = n
			n.takenIn = r.ledger.updates
		}
	}
	for i, e := range join {
		if e.ID != "" {
			take(i, r.ledger.byID[e.ID])
		}
	}
	for i, e := range join {
		if known[i] == nil {
			take(i, r.ledger.fullMatch(e, free))
		}
	}
	var partial []candidate
	for i, e := range join {
		if known[i] == nil {
			partial = r.ledger.candidates(partial, i, e, free)
		}
	}
	slices.SortFunc(partial, compareCandidates)
	for _, c := range partial {
		take(c.index, c.endpoint)
	}
	return known
}

// compatible reports whether n may be the entry of e.
func (n *endpoint) compatible(e Identity) bool { return n.id == "" || e.ID == "" || n.id == e.ID }

// fullMatch returns the most loaded free entry with the same addresses as e.
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
			(best == nil || n.load.inFlight > best.load.inFlight || n.load.inFlight == best.load.inFlight && n.number < best.number) {
			best = n
		}
	}
	return best
}

// candidate is an entry that shares some addresses with an endpoint of an update.
type candidate struct {
	index    int // of the endpoint
	endpoint *endpoint
	shared   int // addresses
}

// compareCandidates puts the better match first: the more loaded entry, then the
// larger overlap, then whichever comes first.
func compareCandidates(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(b.endpoint.load.inFlight, a.endpoint.load.inFlight),
		cmp.Compare(b.shared, a.shared),
		cmp.Compare(a.index, b.index),
		cmp.Compare(a.endpoint.number, b.endpoint.number),
	)
}

// crowded is the number of entries above which an address is a gateway's and does
// not tell one endpoint from another. It also bounds what an update costs.
const crowded = 64

// candidates appends the free entries that share an address with endpoint i and do
// not have another id.
func (l *Ledger) candidates(all []candidate, i int, e Identity, free func(*endpoint) bool) []candidate {
	at := map[*endpoint]int{} // in all
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

// canonicalList returns the endpoints in an order that does not depend on the
// one in which a resolver lists them, and the index that each had.
func canonicalList(eps []Identity) ([]Identity, []int) {
	at := make([]int, len(eps))
	addrs := make([][]string, len(eps))
	for i, e := range eps {
		at[i], addrs[i] = i, canonical(e.Addrs)
	}
	slices.SortFunc(at, func(i, j int) int {
		return cmp.Or(slices.Compare(addrs[i], addrs[j]), cmp.Compare(eps[i].ID, eps[j].ID))
	})
	sorted := make([]Identity, len(eps))
	for k, i := range at {
		sorted[k] = Identity{ID: eps[i].ID, Addrs: addrs[i]}
	}
	return sorted, at
}

// canonical returns the addresses sorted, each once, in a slice of its own.
func canonical(addrs []string) []string {
	addrs = slices.Clone(addrs)
	slices.Sort(addrs)
	return slices.Compact(addrs)
}
