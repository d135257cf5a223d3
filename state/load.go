package state

import "github.com/leastconn/grpc-leastconn/state/internal/order"

// load is an endpoint's load by its terms. Their sum is what its score counts.
type load struct {
	inFlight int64 // live leases
	penalty  int64 // units that failures have left
}

func (t load) sum() int64 { return t.inFlight + t.penalty }

// place is where an endpoint's member stands.
type place struct {
	order  *order.Order[choice]
	handle order.Handle
}

// setLoad changes n's load, its places in the orders and, where a member reaches its
// cap or has room again, who may be chosen.
func (n *endpoint) setLoad(to load) {
	was := n.load.sum()
	n.load = to
	if sum := to.sum(); sum != was { // a member that does not move keeps its turn
		for i := range n.places {
			p := &n.places[i]
			p.order.SetLoad(p.handle, sum)
		}
	}
	if n.connecting > 0 {
		n.rescore()
	}
	if to.inFlight >= n.fullAt || to.inFlight < n.roomBelow {
		n.updateEligibility()
	}
}

// isWorst reports whether, in every ready set that may choose n, n's load over weight
// is not below what any other would have with one more. An endpoint that no ready set
// may choose is not.
func (n *endpoint) isWorst() bool {
	for _, p := range n.places {
		if !p.order.IsWorst(p.handle) {
			return false
		}
	}
	return len(n.places) > 0
}

// enterOrder puts m into the order of the ready set that it is eligible in: a newcomer
// at a random place among its equals, another behind them.
func (m *Member) enterOrder(newcomer bool) {
	o := &m.eligibleIn.order
	m.placedAs = m.effectiveWeight()
	if newcomer {
		m.handle = o.Insert(m.placedAs, m.endpoint.load.sum(), m.choice())
	} else {
		m.handle = o.Append(m.placedAs, m.endpoint.load.sum(), m.choice())
	}
	m.addPlace()
}

// leaveOrder takes m out of the order of v, in which it is, suspended or not.
func (m *Member) leaveOrder(v *ReadySet) {
	h := m.anyHandle()
	if m.handle != order.None {
		m.removePlace()
	}
	v.order.Remove(h)
	m.handle, m.suspended = order.None, order.None
}

// anyHandle returns m's handle in an order, suspended or not, or None.
func (m *Member) anyHandle() order.Handle { return max(m.handle, m.suspended) }

// suspend lets m, in an order, not be chosen until it is resumed.
func (m *Member) suspend() {
	if m.suspended == order.None {
		m.removePlace()
		m.eligibleIn.order.Suspend(m.handle)
		m.handle, m.suspended = order.None, m.handle
	}
}

func (m *Member) resume() {
	if m.suspended != order.None {
		m.eligibleIn.order.Resume(m.suspended, m.endpoint.load.sum())
		m.handle, m.suspended = m.suspended, order.None
		m.addPlace()
	}
}

func (m *Member) addPlace() {
	m.endpoint.places = append(m.endpoint.places, place{&m.eligibleIn.order, m.handle})
}

func (m *Member) removePlace() {
	p := place{&m.eligibleIn.order, m.handle}
	places := m.endpoint.places
	i, last := 0, len(places)-1
	for places[i] != p {
		i++
	}
	places[i], places[last] = places[last], place{}
	m.endpoint.places = places[:last]
}
