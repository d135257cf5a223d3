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
	if n.again.due(to) {
		n.updateEligibility()
	}
}

// again is the loads from which on, or below which, an endpoint's members are full,
// busy or empty, or are not any more.
type again struct {
	sum, inFlight struct{ from, below int64 }
}

// neverAgain is that of an endpoint whose members do not depend on its load.
var neverAgain = func() (a again) {
	a.sum.from, a.inFlight.from = noLimit, noLimit
	return a
}()

func (a *again) due(t load) bool {
	sum := t.sum()
	return sum >= a.sum.from || sum < a.sum.below || t.inFlight >= a.inFlight.from || t.inFlight < a.inFlight.below
}

// isWorst reports whether n has the highest score of all, alone, among its like in
// every ready set that may choose it: among those with room, when it has some and
// none is full, else among those that penalties alone fill. It has not while a member
// is busy, since RPCs then look for room elsewhere; nor where nobody may choose it.
func (n *endpoint) isWorst() bool {
	for _, m := range n.members {
		v := m.eligibleIn
		if v == nil {
			continue
		}
		if v.busy > 0 || !m.full && v.full > 0 || !m.order.IsWorst(m.handle) {
			return false
		}
	}
	return len(n.places) > 0
}

// addPlace puts m into an order of its ready set: a newcomer at a random place among
// its equals, another behind them.
func (m *Member) addPlace(o *order.Order[choice], newcomer bool) {
	m.order = o
	m.placedAs = m.effectiveWeight()
	if newcomer {
		m.handle = o.Insert(m.placedAs, m.endpoint.load.sum(), m.choice())
	} else {
		m.handle = o.Append(m.placedAs, m.endpoint.load.sum(), m.choice())
	}
	m.endpoint.places = append(m.endpoint.places, place{o, m.handle})
}

// removePlace takes m out of the order in which it is.
func (m *Member) removePlace() {
	p := place{m.order, m.handle}
	p.order.Remove(p.handle)
	m.order, m.handle = nil, order.None
	places := m.endpoint.places
	i, last := 0, len(places)-1
	for places[i] != p {
		i++
	}
	places[i], places[last] = places[last], place{}
	m.endpoint.places = places[:last]
}
