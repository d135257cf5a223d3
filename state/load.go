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

// isWorst reports whether n has the highest score of all, alone, in every ready set
// that may choose it. An endpoint that no ready set may choose is not.
func (n *endpoint) isWorst() bool {
	for _, p := range n.places {
		if !p.order.IsWorst(p.handle) {
			return false
		}
	}
	return len(n.places) > 0
}

// addPlace puts m into its ready set's order: a newcomer at a random place among its
// equals, another behind them.
func (m *Member) addPlace(newcomer bool) {
	o := &m.readySet.order
	m.placedAs = m.effectiveWeight()
	if newcomer {
		m.handle = o.Insert(m.placedAs, m.endpoint.load.sum(), m.choice())
	} else {
		m.handle = o.Append(m.placedAs, m.endpoint.load.sum(), m.choice())
	}
	m.endpoint.places = append(m.endpoint.places, place{o, m.handle})
}

// removePlace takes m out of the order of v, in which it is.
func (m *Member) removePlace(v *ReadySet) {
	p := place{&v.order, m.handle}
	p.order.Remove(p.handle)
	m.handle = order.None
	places := m.endpoint.places
	i, last := 0, len(places)-1
	for places[i] != p {
		i++
	}
	places[i], places[last] = places[last], place{}
	m.endpoint.places = places[:last]
}
