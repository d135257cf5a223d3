package state

import (
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// endpoint is one endpoint's entry in a ledger. It lives while an endpoint set lists it or
// a lease of it is out. The ledger's mutex guards it.
type endpoint struct {
	// What a pick touches.
	inFlight  int64
	load      int64    // in flight and penalty: where it stands in the orders
	fullAt    int64    // the count at which, and
	roomBelow int64    // the one below which, its members' places are to be looked at again
	picks     uint64   // leases, ever
	places    []place  // in the orders of the ready sets that may choose it
	one       [1]place // room for the only one that most endpoints have
	ledger    *Ledger

	members []*Member // at most one of each endpoint set
	number  uint64    // rises with each endpoint of the ledger
	id      string    // explicit identity, "" without one
	addrs   []string  // sorted; what its members list, or what the last of them listed

	penalty   int64 // units of fines
	penalties []penalty
	since     time.Duration // when its last ramp began
}

func (l *Ledger) newEndpoint() *endpoint {
	l.made++
	n := &endpoint{ledger: l, number: l.made, fullAt: noLimit, since: never}
	n.places = n.one[:0]
	l.endpoints[n] = struct{}{}
	return n
}

// retire removes n once neither a member nor a lease needs it.
func (l *Ledger) retire(n *endpoint) {
	if len(n.members) > 0 || n.inFlight > 0 {
		return
	}
	n.setAddrs(nil)
	delete(l.penalized, n)
	if n.id != "" {
		delete(l.byID, n.id)
	}
	delete(l.endpoints, n)
}

// setInFlight changes the count and all that follows from it.
func (n *endpoint) setInFlight(count int64) {
	n.inFlight = count
	n.shift()
	if count >= n.fullAt || count < n.roomBelow {
		n.updateEligibility()
	}
}

// shift changes the load, and each ready set's order with it.
func (n *endpoint) shift() {
	load := n.inFlight + n.penalty
	if n.load == load {
		return // a member that does not move keeps its turn
	}
	n.load = load
	for i := range n.places {
		p := &n.places[i]
		p.order.SetLoad(p.handle, load)
	}
}

// place is where an endpoint's member stands.
type place struct {
	order  *order.Order[choice]
	handle order.Handle
}

// choice is what an order holds of a member: a pick need not look at the member
// itself, which often is in no cache.
type choice struct {
	endpoint *endpoint
	value    any
	member   *Member
}

func (m *Member) choice() choice { return choice{m.endpoint, m.value, m} }

// addPlace notes that m has a handle in its ready set's order.
func (m *Member) addPlace(h order.Handle) {
	m.handle = h
	m.endpoint.places = append(m.endpoint.places, place{&m.readySet.order, h})
}

// removePlace takes m out of its ready set's order.
func (m *Member) removePlace() {
	p := place{&m.readySet.order, m.handle}
	p.order.Remove(p.handle)
	m.handle = order.None
	places := m.endpoint.places
	i, last := slices.Index(places, p), len(places)-1
	places[i], places[last] = places[last], place{}
	m.endpoint.places = places[:last]
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
	n.relist()
}

// detach ends m's membership.
func (n *endpoint) detach(m *Member) {
	m.endpoint = nil
	i := slices.Index(n.members, m)
	n.members = slices.Delete(n.members, i, i+1)
	if len(n.members) > 0 {
		n.relist()
	}
	n.ledger.retire(n)
}

// relist makes the endpoint's addresses those that its members list.
func (n *endpoint) relist() {
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
