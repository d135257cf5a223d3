package state

import (
	"math"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// noLimit is the cap of a member that has none.
const noLimit = math.MaxInt64

// SetMaxInFlight caps the RPCs in flight on the member's endpoint, of all channels
// together, up to which its endpoint set chooses it; 0: no cap. A cap below what is in
// flight takes effect as RPCs end.
func (m *Member) SetMaxInFlight(limit uint32) {
	mu := m.set.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	m.limit = int64(limit)
	if limit == 0 {
		m.limit = noLimit
	}
	if m.endpoint != nil {
		m.endpoint.updateEligibility()
		m.set.grant()
	}
}

// updateEligibility brings n's members in line with its count: a member at its
// cap is in no order. It notes at which counts that must be done again: where a
// member would be full, or have room, and while one ramps, where n is empty or
// is not any more.
func (n *endpoint) updateEligibility() {
	n.fullAt, n.roomBelow = noLimit, 0
	for _, m := range n.members {
		m.updateEligibility()
		switch {
		case m.readySet == nil || m.weight == 0:
		case m.full:
			n.roomBelow = max(n.roomBelow, m.limit)
		default:
			n.fullAt = min(n.fullAt, m.limit)
			if m.ramping() && n.inFlight == 0 {
				n.fullAt = min(n.fullAt, 1)
			} else if m.ramping() {
				n.roomBelow = max(n.roomBelow, 1)
			}
		}
	}
}

// updateEligibility keeps m in its ready set's order exactly while it may be chosen.
func (m *Member) updateEligibility() {
	takes := m.readySet != nil && m.weight > 0
	switch full := takes && m.endpoint.inFlight >= m.limit; {
	case full && !m.full:
		m.full = true
		m.readySet.full++
	case !full && m.full:
		m.full = false
		m.readySet.full--
	}
	switch may := takes && !m.full; {
	case may && m.handle == order.None:
		m.addPlace(m.readySet.order.Append(m.effectiveWeight(), m.endpoint.load, m.choice()))
	case !may && m.handle != order.None:
		m.removePlace()
	}
	m.await()
}
