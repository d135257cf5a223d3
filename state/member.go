package state

import (
	"math"
	"time"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// noLimit is the cap of a member that has none.
const noLimit = math.MaxInt64

// Member is one endpoint of an endpoint set. While it is in a ready set, RPCs are
// given to it: unless its weight is 0, its endpoint is drained or it is at its cap.
//
// It is busy when RPCs in flight alone reach its cap, or the limit of its connection, and
// full when they reach either together with penalties: of its endpoint at its cap, of the
// connection's RPCs at its limit. So an endpoint that fails at once gets at most that many
// until its penalties end, while others have room or are busy.
type Member struct {
	endpoint *endpoint // nil once it has left
	set      *EndpointSet

	// What changed brings everything else in line with.
	value      any         // which the order has, too
	readySet   *ReadySet   // nil while it is not ready
	limit      int64       // of its endpoint's RPCs in flight
	connection *Connection // never nil
	first      Connection  // before any other
	weight     uint32
	drained    bool // its endpoint is, whatever the weight
	newcomer   bool // it takes its place anew

	// What follows from that and from the endpoint's load.
	full, busy bool         // it is eligible, and at its limit
	eligibleIn *ReadySet    // the ready set that it has a weight above 0 in
	placedAs   float64      // the weight that it has in the ready set's order
	handle     order.Handle // there; None while it has no room
	suspended  order.Handle // there, while it is full; else None
	fallback   order.Handle // in another order of the ready set, while it is full; or None
	fallbackIn *choiceOrder
	slowStart  memberSlowStart
	connecting *memberConnecting // nil once it is neither waited for nor reserved
	newcomerAt int               // its index among its plan's newcomers, where that one is its

	picks     uint64 // on connections that it had before, not taken yet
	penalties uint64 // likewise
	counted   bool   // its counts were taken, if only as 0

	since        time.Duration // when it became ready, began to drain or stopped to be ready, by the ledger's clock
	connectivity Connectivity  // as its balancer tells

	id      string
	addrs   []string // sorted, each once
	leaving bool     // while an update is applied
}

func (r *EndpointSet) newMember() *Member {
	m := &Member{
		set: r, limit: noLimit, handle: order.None, suspended: order.None, fallback: order.None,
		slowStart: memberSlowStart{start: never, factor: 1, ramp: noRamp},
		first:     Connection{mu: r.ledger.mu, limit: noLimit, fullAt: noLimit},
	}
	m.connection, m.first.member = &m.first, m
	return m
}

// SetMaxInFlight caps the RPCs in flight on the member's endpoint, of all channels
// together, up to which its endpoint set chooses it; 0: no cap. A cap below what is
// in flight takes effect as RPCs end.
func (m *Member) SetMaxInFlight(limit uint32) {
	mu := m.set.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	m.limit = int64(limit)
	if limit == 0 {
		m.limit = noLimit
	}
	if m.endpoint != nil {
		m.changed()
	}
}

// changed brings everything in line with m's ready set, weight, drains, cap and guards. Who
// changes one of these calls it, and nothing else: the slow start first, which makes
// the weight; then the orders; then what RPCs that wait were granted on m and may not
// keep, and what room there is for them now.
func (m *Member) changed() {
	m.updateOrders()
	m.updateWaits()
}

// updateOrders brings m's slow start and the orders in line.
func (m *Member) updateOrders() {
	m.updateSlowStart(m.set.ledger.clock.read())
	m.updateEligibility()
	m.endpoint.watch(m)
	m.endpoint.summary.known = false
}

// updateWaits brings RPCs in line that wait.
func (m *Member) updateWaits() {
	if m.connecting != nil {
		m.updateConnecting()
	}
	m.set.revoke(m)
	m.set.grant()
}

// updateEligibility brings n's members in line with its load. It notes at which loads
// that must be done again: where a member would be full, or busy, or not any more.
func (n *endpoint) updateEligibility() {
	n.again = neverAgain
	for _, m := range n.members {
		m.updateEligibility()
		n.watch(m)
	}
}

// watch sees to it that m is looked at again when n's load has changed that much. What
// was noted for m before stays, and does no harm.
func (n *endpoint) watch(m *Member) {
	if m.eligibleIn != nil {
		n.again.rpcs.note(n.load.rpcs() >= m.limit, m.limit)
		n.again.inFlight.note(n.load.inFlight >= m.limit, m.limit)
	}
}

// eligible returns the ready set that m has a weight above 0 in, or nil: it does not drain.
func (m *Member) eligible() *ReadySet {
	if m.weight == 0 || m.drained {
		return nil
	}
	return m.readySet
}

// updateEligibility keeps m in its ready set's order exactly while it is eligible,
// suspended there while it is full, and in one of the other orders while that is so
// because of penalties alone, or of its connection alone.
func (m *Member) updateEligibility() {
	v := m.eligible()
	if was := m.eligibleIn; was != nil && was != v {
		m.setFull(false, false)
		m.leaveOrders()
		was.eligible--
		m.eligibleIn = nil
		if p := m.set.plan; p != nil {
			p.lost(m)
		}
	}
	renewed := m.newcomer
	m.newcomer = false
	if v == nil {
		return
	}
	if m.eligibleIn == nil {
		m.eligibleIn = v
		v.eligible++
		if p := m.set.plan; p != nil {
			p.joined(m)
		}
		m.enterOrder(renewed)
	} else {
		m.reweigh(renewed)
	}
	m.setFull(m.fullness())
	fallback := m.fallbackOrder()
	if fallback != m.fallbackIn {
		m.leaveFallback()
	}
	if m.full {
		m.suspend()
	} else {
		m.resume()
	}
	if fallback != nil {
		m.enterFallback(fallback, renewed)
	}
}

// fullness reports whether m is full and whether it is busy.
func (m *Member) fullness() (full, busy bool) {
	load, c := m.endpoint.load, m.connection
	return c.inFlight+c.failed >= c.fullAt || load.rpcs() >= m.limit, c.full() || load.inFlight >= m.limit
}

// fullnessChanged reports whether m, if it is eligible, is to be full or busy and is not,
// or the other way round.
func (m *Member) fullnessChanged() bool {
	if m.eligibleIn == nil {
		return false
	}
	full, busy := m.fullness()
	return full != m.full || busy != m.busy
}

// fallbackOrder returns the order, beside its ready set's own, that m is to be in.
func (m *Member) fallbackOrder() *choiceOrder {
	switch {
	case m.full && !m.busy:
		return &m.eligibleIn.overfull
	case m.full && m.endpoint.load.inFlight < m.limit:
		return &m.eligibleIn.noRoom
	}
	return nil
}

// setFull counts m among the full and the busy ones of its ready set.
func (m *Member) setFull(full, busy bool) {
	count := func(n *int, is, was bool) {
		switch {
		case is && !was:
			*n++
		case was && !is:
			*n--
		}
	}
	if full != m.full && m.endpoint != nil {
		m.endpoint.summary.known = false
	}
	if v := m.eligibleIn; v != nil {
		count(&v.full, full, m.full)
		count(&v.busy, busy, m.busy)
	}
	m.full, m.busy = full, busy
}

// effectiveWeight returns the weight that m has now.
func (m *Member) effectiveWeight() float64 { return float64(m.weight) * m.slowStart.factor }
