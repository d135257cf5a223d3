package state

import (
	"slices"
	"time"
)

// endpoint is an endpoint's entry in a ledger. It lives while an endpoint set lists
// the endpoint or a lease of it is out. It takes whole lines of memory, so that what a pick
// touches is in two of them.
type endpoint struct {
	// What a pick touches.
	load       load
	again      again     // the loads at which updateEligibility is due
	leases     leaseList // live ones
	picks      uint64    // leases, ever
	ledger     *Ledger
	connecting int32    // members that RPCs may wait for
	highest    int32    // in flight, ever
	places     []place  // in the orders of the ready sets that may choose it
	one        [1]place // room for the only one that most endpoints have

	granted  int64 // live leases that RPCs have not taken up
	asked    int32 // live leases whose RPCs were asked to move, and may do so still
	arriving int32 // live leases that are places for such RPCs
	leaving  int64 // units of those that were asked
	shun     shun

	failures             uint64        // leases that failed, ever
	movedHere, movedAway uint64        // RPCs of sessions, ever
	departedAt           time.Duration // when the last member left, by the ledger's clock

	members []*Member      // at most one of each endpoint set
	sets    []*EndpointSet // of each member: to find one, no other needs to be read
	number  uint64         // rises with each endpoint of the ledger
	id      string         // explicit identity, "" without one
	addrs   []string       // sorted; what its members list, or what the last of them listed. Replaced, never written to
	listed  []int          // by how many members each of addrs is

	summary   summary       // for totals
	parts     []summary     // beside it, by labels: see newParts
	left      []departure   // by target: those that have left it with RPCs in flight
	takenIn   uint64        // the last update that has matched it
	penalties []penalty     // by when they end
	drains    []*drain      // while there is one, its members take no RPCs
	rampStart time.Duration // of its last slow start
	reported  reported
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
	n.removeFromIndex(n.addrs)
	delete(l.penalized, n)
	if n.id != "" {
		delete(l.byID, n.id)
	}
	delete(l.endpoints, n)
}

// attach makes m the member of n that lists e, or takes up what m lists now.
func (n *endpoint) attach(m *Member, e Identity) {
	var was []string
	if m.endpoint == n {
		was = m.addrs
	} else {
		m.endpoint = n
		m.setDrained(n.isDrained())
		n.summary.known = false
		n.members, n.sets = append(n.members, m), append(n.sets, m.set)
	}
	m.id, m.addrs = e.ID, e.Addrs
	if m.id != "" && n.id == "" && n.ledger.byID[m.id] == nil {
		n.id = m.id
		n.ledger.byID[n.id] = n
	}
	n.relist(was, m.addrs)
}

// detach ends m's membership.
func (n *endpoint) detach(m *Member) {
	m.endpoint = nil
	m.setDrained(false)
	n.summary.known = false
	i := slices.Index(n.members, m)
	n.members, n.sets = slices.Delete(n.members, i, i+1), slices.Delete(n.sets, i, i+1)
	if len(n.members) == 0 {
		n.endDrains()
	}
	n.depart(m.set.labels)
	if len(n.members) == 0 {
		n.departedAt = n.ledger.clock.read()
	}
	n.relist(m.addrs, nil)
	n.ledger.retire(n)
}

// memberOf returns r's member on n, or nil.
func (n *endpoint) memberOf(r *EndpointSet) *Member {
	if i := slices.Index(n.sets, r); i >= 0 {
		return n.members[i]
	}
	return nil
}

// relist takes up what a member of n lists now, and no more what it listed. Nothing
// but counts changes where other members list the same.
func (n *endpoint) relist(was, now []string) {
	if slices.Equal(was, now) {
		return
	}
	var added []string
	for _, a := range now {
		if i, known := slices.BinarySearch(n.addrs, a); known {
			n.listed[i]++
		} else {
			added = append(added, a)
		}
	}
	for _, a := range was {
		i, _ := slices.BinarySearch(n.addrs, a)
		n.listed[i]--
	}
	if len(n.members) > 0 && (len(added) > 0 || slices.Contains(n.listed, 0)) {
		n.setAddrs(added)
	}
}

// setAddrs drops the addresses that nobody lists and adds those that one member does.
func (n *endpoint) setAddrs(added []string) {
	var kept, dropped []string
	for i, a := range n.addrs {
		if n.listed[i] > 0 {
			kept = append(kept, a)
		} else {
			dropped = append(dropped, a)
		}
	}
	n.removeFromIndex(dropped)
	for _, a := range added {
		n.ledger.byAddr[a] = append(n.ledger.byAddr[a], n)
	}
	all := append(kept, added...)
	slices.Sort(all)
	listed := make([]int, len(all))
	for i, a := range all {
		listed[i] = 1
		if k, known := slices.BinarySearch(n.addrs, a); known {
			listed[i] = n.listed[k]
		}
	}
	n.addrs, n.listed = all, listed
}

// removeFromIndex lets n not be found by addresses that it has had.
func (n *endpoint) removeFromIndex(addrs []string) {
	index := n.ledger.byAddr
	for _, a := range addrs {
		rest := index[a]
		i := slices.Index(rest, n)
		if rest = slices.Delete(rest, i, i+1); len(rest) > 0 {
			index[a] = rest
		} else {
			delete(index, a)
		}
	}
}
