package state

import "math"

// noLimit is the cap of a member that has none.
const noLimit = math.MaxInt64

// SetMaxInFlight caps the RPCs in flight on the member's node, of all channels
// together, up to which its roster chooses it; 0: no cap. A cap below what is in
// flight takes effect as RPCs end.
func (m *Member) SetMaxInFlight(limit uint32) {
	mu := m.roster.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	m.limit = int64(limit)
	if limit == 0 {
		m.limit = noLimit
	}
	if m.node != nil {
		m.node.refit()
		m.roster.grant()
	}
}

// refit brings the seats of n's members in line with its count: a member at its
// cap has none. It notes at which counts that must be done again: where a
// member would be full, or have room, and while one ramps, where n is empty or
// is not any more.
func (n *node) refit() {
	n.high, n.low = noLimit, 0
	for _, m := range n.members {
		m.fit()
		switch {
		case m.view == nil || m.weight == 0:
		case m.full:
			n.low = max(n.low, m.limit)
		default:
			n.high = min(n.high, m.limit)
			if m.ramping() && n.inFlight == 0 {
				n.high = min(n.high, 1)
			} else if m.ramping() {
				n.low = max(n.low, 1)
			}
		}
	}
}

// fit seats m exactly while it may be chosen.
func (m *Member) fit() {
	takes := m.view != nil && m.weight > 0
	switch full := takes && m.node.inFlight >= m.limit; {
	case full && !m.full:
		m.full = true
		m.view.full++
	case !full && m.full:
		m.full = false
		m.view.full--
	}
	switch may := takes && !m.full; {
	case may && m.seat == none:
		m.view.order.replace(m, m.effective(), m.value)
	case !may && m.seat != none:
		m.view.order.remove(m)
	}
	m.await()
}
