package state

import (
	"math"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// load is an endpoint's load by its terms. A score counts units, caps count RPCs.
type load struct {
	inFlight int64 // live leases
	units    int64 // that they cost: one each, unless a Cost says more
	failed   int64 // RPCs whose failures weigh on the endpoint still
	penalty  int64 // units that these have left
}

// sum is what a score counts.
func (t *load) sum() int64 { return t.units + t.penalty }

// rpcs is what a cap counts.
func (t *load) rpcs() int64 { return t.inFlight + t.failed }

// place is where an endpoint's member stands.
type place struct {
	order  *choiceOrder
	handle order.Handle
}

// setLoad changes n's load and what follows from it.
func (n *endpoint) setLoad(to load) {
	moved := to.sum() != n.load.sum() // a member that does not move keeps its turn
	n.load = to
	n.loadChanged(moved)
}

// count changes what is in flight on n, and what follows from that.
func (n *endpoint) count(rpcs, units int64) {
	n.load.inFlight += rpcs
	n.load.units += units
	n.loadChanged(units != 0)
}

// loadChanged brings in line with n's load its places in the orders, if it has moved, and,
// where a member reaches its cap or has room again, who may be chosen.
func (n *endpoint) loadChanged(moved bool) {
	if moved {
		sum := n.load.sum()
		for i := range n.places {
			p := &n.places[i]
			p.order.SetLoad(p.handle, sum)
		}
	}
	if n.connecting > 0 {
		n.rescore()
	}
	if n.again.due(&n.load) {
		n.updateEligibility()
	}
}

// again is the loads at which an endpoint's members are full or busy, or are not any
// more.
type again struct{ rpcs, inFlight thresholds }

// thresholds are those of a number of RPCs: from one on, or below the other, something is
// due. They are short, so that what a pick touches of an endpoint fills two lines of memory.
type thresholds struct{ from, below uint32 }

// neverAgain is that of an endpoint whose members do not depend on its load.
var neverAgain = again{rpcs: thresholds{from: math.MaxUint32}, inFlight: thresholds{from: math.MaxUint32}}

func (a *again) due(t *load) bool { return a.rpcs.due(t.rpcs()) || a.inFlight.due(t.inFlight) }

func (t *thresholds) due(n int64) bool { return n >= int64(t.from) || n < int64(t.below) }

// note notes when a member that has reached a limit, or has not, does so no more.
func (t *thresholds) note(reached bool, limit int64) {
	short := uint32(min(limit, math.MaxUint32))
	if reached {
		t.below = max(t.below, short)
	} else {
		t.from = min(t.from, short)
	}
}

// isWorst reports whether, in every ready set that may choose n, n's load over weight
// is not below what any other of its like would have with one more: among those with
// room, when it has some and none is full, else among those that penalties alone fill.
// It is not while a member is busy, since RPCs then look for room elsewhere; nor where
// nobody may choose it.
func (n *endpoint) isWorst() bool {
	for _, m := range n.members {
		v := m.eligibleIn
		if v == nil {
			continue
		}
		if v.busy > 0 || !m.full && v.full > 0 {
			return false
		}
		if o, h := m.place(); !o.IsWorst(h) {
			return false
		}
	}
	return len(n.places) > 0
}

// place returns where m may be chosen, nil while it may not be.
func (m *Member) place() (*choiceOrder, order.Handle) {
	switch {
	case m.handle != order.None:
		return &m.eligibleIn.order, m.handle
	case m.fallbackIn != nil:
		return m.fallbackIn, m.fallback
	}
	return nil, order.None
}

// enterOrder puts m into the order of the ready set that it is eligible in: a newcomer
// at a random place among its equals, another behind them.
func (m *Member) enterOrder(newcomer bool) {
	m.placedAs = m.effectiveWeight()
	m.handle = m.enter(&m.eligibleIn.order, m.placedAs, newcomer)
	if y := m.eligibleIn.young; y != nil {
		y.enter(m.handle, m.set.ledger.clock.now)
	}
	m.addPlace()
}

func (m *Member) enter(o *choiceOrder, weight float64, newcomer bool) order.Handle {
	if newcomer {
		return o.Insert(weight, m.endpoint.load.sum(), m.choice())
	}
	return o.Append(weight, m.endpoint.load.sum(), m.choice())
}

// leaveOrders takes m out of the orders of the ready set that it was eligible in,
// suspended or not.
func (m *Member) leaveOrders() {
	m.leaveFallback()
	h := m.anyHandle()
	if m.handle != order.None {
		m.removePlace()
	}
	if y := m.eligibleIn.young; y != nil {
		y.leave(h)
	}
	m.eligibleIn.order.Remove(h)
	m.handle, m.suspended = order.None, order.None
}

// reweigh gives m its weight in the orders. One that is as new takes its place anew.
func (m *Member) reweigh(renewed bool) {
	w, v := m.effectiveWeight(), m.eligibleIn
	if !renewed && w == m.placedAs {
		return
	}
	m.placedAs = w
	set := (*choiceOrder).SetWeight
	if renewed {
		set = (*choiceOrder).Renew
	}
	set(&v.order, m.anyHandle(), w)
	if v.young != nil {
		v.young.reweigh(m.anyHandle(), v.order.ClassWeight(m.anyHandle()))
	}
	if m.fallbackIn != nil {
		set(m.fallbackIn, m.fallback, v.order.ClassWeight(m.suspended))
	}
}

// enterFallback puts m, which is suspended, into another order of its ready set. Its
// class there is the one that it has in the order.
func (m *Member) enterFallback(o *choiceOrder, newcomer bool) {
	if m.fallbackIn == nil {
		m.fallback, m.fallbackIn = m.enter(o, m.eligibleIn.order.ClassWeight(m.suspended), newcomer), o
		m.addPlace()
	}
}

func (m *Member) leaveFallback() {
	if m.fallbackIn != nil {
		m.removePlace()
		m.fallbackIn.Remove(m.fallback)
		m.fallback, m.fallbackIn = order.None, nil
	}
}

// anyHandle returns m's handle in the order, suspended or not, or None.
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
	o, h := m.place()
	m.endpoint.places = append(m.endpoint.places, place{o, h})
}

func (m *Member) removePlace() {
	o, h := m.place()
	p := place{o, h}
	places := m.endpoint.places
	i, last := 0, len(places)-1
	for places[i] != p {
		i++
	}
	places[i], places[last] = places[last], place{}
	m.endpoint.places = places[:last]
}
