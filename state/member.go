package state

import (
	"math"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// noLimit is the cap of a member that has none.
const noLimit = math.MaxInt64

// Member is one endpoint of an endpoint set. While it is in a ready set, RPCs are
// given to it: unless its weight is 0 or it is at its cap.
type Member struct {
	endpoint *endpoint // nil once it has left
	set      *EndpointSet

	// What changed brings everything else in line with.
	value    any       // which the order has, too
	readySet *ReadySet // nil while it is not ready
	limit    int64     // of its endpoint's RPCs in flight
	weight   uint32
	newcomer bool // it takes its place anew

	// What follows from that and from the endpoint's load.
	full       bool         // it is eligible, and at its limit
	eligibleIn *ReadySet    // the ready set that it has a weight above 0 in
	placedAs   float64      // the weight that it has in the ready set's order
	handle     order.Handle // there; None while it may not be chosen
	suspended  order.Handle // there, while it is full; else None
	slowStart  memberSlowStart
	connecting *memberConnecting // nil once it is neither waited for nor reserved

	id      string
	addrs   []string // sorted, each once
	leaving bool     // while an update is applied
}

func (r *EndpointSet) newMember() *Member {
	return &Member{
		set: r, limit: noLimit, handle: order.None, suspended: order.None,
		slowStart: memberSlowStart{start: never, factor: 1, ramp: noRamp},
	}
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

// changed brings everything in line with m's ready set, weight, cap and guards. Who
// changes one of these calls it, and nothing else: the slow start first, which makes
// the weight; then the orders; then what RPCs that wait were granted on m and may not
// keep, and what room there is for them now.
func (m *Member) changed() {
	m.updateSlowStart(m.set.ledger.clock.read())
	m.updateEligibility()
	m.endpoint.watch(m)
	m.endpoint.summary.known = false
	if m.connecting != nil {
		m.updateConnecting()
	}
	m.set.revoke(m)
	m.set.grant()
}

// updateEligibility brings n's members in line with its RPCs in flight. It notes at
// which number that must be done again: where a member would be full, or have room.
func (n *endpoint) updateEligibility() {
	n.fullAt, n.roomBelow = noLimit, 0
	for _, m := range n.members {
		m.updateEligibility()
		n.watch(m)
	}
}

// watch sees to it that m is looked at again when n's RPCs in flight have changed that
// much. What was noted for m before stays, and does no harm.
func (n *endpoint) watch(m *Member) {
	switch {
	case m.eligibleIn == nil:
	case m.full:
		n.roomBelow = max(n.roomBelow, m.limit)
	default:
		n.fullAt = min(n.fullAt, m.limit)
	}
}

// eligible returns the ready set that m has a weight above 0 in, or nil.
func (m *Member) eligible() *ReadySet {
	if m.weight == 0 {
		return nil
	}
	return m.readySet
}

// updateEligibility keeps m in its ready set's order exactly while it is eligible, and
// suspended there while it is full.
func (m *Member) updateEligibility() {
	v := m.eligible()
	if was := m.eligibleIn; was != nil && was != v {
		m.setFull(false)
		m.leaveOrder(was)
		m.eligibleIn = nil
	}
	renewed := m.newcomer
	m.newcomer = false
	if v == nil {
		return
	}
	if m.eligibleIn == nil {
		m.eligibleIn = v
		m.enterOrder(renewed)
	} else if w := m.effectiveWeight(); renewed {
		v.order.Renew(m.anyHandle(), w)
		m.placedAs = w
	} else if w != m.placedAs {
		v.order.SetWeight(m.anyHandle(), w)
		m.placedAs = w
	}
	m.setFull(m.endpoint.load.inFlight >= m.limit)
	if m.full {
		m.suspend()
	} else {
		m.resume()
	}
}

func (m *Member) setFull(full bool) {
	switch {
	case full && !m.full:
		m.eligibleIn.full++
	case !full && m.full:
		m.eligibleIn.full--
	}
	m.full = full
}

// effectiveWeight returns the weight that m has now.
func (m *Member) effectiveWeight() float64 { return float64(m.weight) * m.slowStart.factor }
