package state

import (
	"slices"
	"time"
)

// endpoint is an endpoint's entry in a ledger. It lives while an endpoint set lists
// the endpoint or a lease of it is out.
type endpoint struct {
	// What a pick touches.
	load   load
	again  again     // the loads at which updateEligibility is due
	leases leaseList // live ones
	picks  uint64    // leases, ever
	ledger *Ledger
	places []place  // in the orders of the ready sets that may choose it
	one    [1]place // room for the only one that most endpoints have

	members []*Member // at most one of each endpoint set
	number  uint64    // rises with each endpoint of the ledger
	id      string    // explicit identity, "" without one
	addrs   []string  // sorted; what its members list, or what the last of them listed

	penalties []penalty     // by when they end
	rampStart time.Duration // of its last slow start
}

func (l *Ledger) newEndpoint() *endpoint {
	l.made++
	n := &endpoint{ledger: l, number: l.made, again: neverAgain, rampStart: never}
	n.places = n.one[:0]
	l.endpoints[n] = struct{}{}
	return n
}

// retire removes n once neither a member nor a lease needs it.
func (l *Ledger) retire(n *endpoint) {
	if len(n.members) > 0 || n.load.inFlight > 0 {
		return
	}
	n.setAddrs(nil)
	delete(l.penalized, n)
	if n.id != "" {
		delete(l.byID, n.id)
	}
	delete(l.endpoints, n)
}

// attach makes m a member of n, or takes up what m lists now.
func (n *endpoint) attach(m *Member) {
	if m.endpoint != n {
		m.endpoint = n
		n.members = append(n.members, m)
	}
	if m.id != "" && n.id == "" && n.ledger.byID[m.id] == nil {
		n.id = m.id
		n.ledger.byID[n.id] = n
	}
	n.updateAddrs()
}

// detach ends m's membership.
func (n *endpoint) detach(m *Member) {
	m.endpoint = nil
	i := slices.Index(n.members, m)
	n.members = slices.Delete(n.members, i, i+1)
	if len(n.members) > 0 {
		n.updateAddrs()
	}
	n.ledger.retire(n)
}

// memberOf returns r's member on n, or nil.
func (n *endpoint) memberOf(r *EndpointSet) *Member {
	for _, m := range n.members {
		if m.set == r {
			return m
		}
	}
	return nil
}

// updateAddrs makes the endpoint's addresses those that its members list.
func (n *endpoint) updateAddrs() {
	if len(n.members) == 1 {
		n.setAddrs(n.members[0].addrs)
		return
	}
	var all []string
	for _, m := range n.members {
		all = append(all, m.addrs...)
	}
	slices.Sort(all)
	n.setAddrs(slices.Compact(all))
}

// setAddrs replaces the sorted addresses and keeps the ledger's index in step.
func (n *endpoint) setAddrs(addrs []string) {
	if slices.Equal(n.addrs, addrs) {
		return
	}
	index := n.ledger.byAddr
	for _, a := range n.addrs {
		rest := index[a]
		i := slices.Index(rest, n)
		if rest = slices.Delete(rest, i, i+1); len(rest) > 0 {
			index[a] = rest
		} else {
			delete(index, a)
		}
	}
	for _, a := range addrs {
		index[a] = append(index[a], n)
	}
	n.addrs = addrs
}
