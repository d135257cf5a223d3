package state

import (
	"math"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// noLimit is the cap of a member that has none.
const noLimit = math.MaxInt64

// Member is one endpoint of an endpoint set. While it is in a ready set, RPCs are
// given to it: unless its weight is 0 or it is at its cap.
//
// It is busy when RPCs in flight alone reach its cap, and full when they do together
// with the penalties of its endpoint. So an endpoint that fails at once gets at most
// its cap until its penalties end, while others have room or are busy.
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
	full, busy bool         // it is eligible, and at its limit
	eligibleIn *ReadySet    // the ready set that it has a weight above 0 in
	order      *choiceOrder // of the ready set; nil while it may not be chosen
	placedAs   float64      // the weight that it has there
	handle     order.Handle // there; None without an order
	minShare   memberMinShare
	slowStart  memberSlowStart

	id       string
	addrs    []string // sorted, each once
	leaving  bool     // while an update is applied
	leftBusy bool     // RPCs were in flight on its endpoint when it left
}

func (r *EndpointSet) newMember() *Member {
	return &Member{
		set: r, limit: noLimit, handle: order.None,
		slowStart: memberSlowStart{start: never, factor: 1}, minShare: memberMinShare{index: none},
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

// LeftBusy reports whether RPCs were in flight on the member's endpoint when it left
// its endpoint set: among them are all that have been picked through it.
func (m *Member) LeftBusy() bool {
	mu := m.set.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	return m.leftBusy
}

// changed brings everything in line with m's ready set, weight, cap and guards. Who
// changes one of these calls it, and nothing else: the slow start first, which makes
// the weight; then the orders; then what RPCs that wait were granted on m and may not
// keep, and what room there is for them now.
func (m *Member) changed() {
	m.updateSlowStart(m.set.ledger.clock.read())
	m.endpoint.updateEligibility()
	m.set.revoke(m)
	m.set.grant()
}

// updateEligibility brings n's members in line with its load. It notes at which loads
// that must be done again: where a member would be full, or busy, or not any more,
// and where n, while a member starts slowly, is empty or is not any more.
func (n *endpoint) updateEligibility() {
	n.again = neverAgain
	for _, m := range n.members {
		m.updateEligibility()
		if m.eligibleIn == nil {
			continue
		}
		sum, inFlight := &n.again.sum, &n.again.inFlight
		if m.full {
			sum.below = max(sum.below, m.limit)
		} else {
			sum.from = min(sum.from, m.limit)
		}
		if m.busy {
			inFlight.below = max(inFlight.below, m.limit)
		} else {
			inFlight.from = min(inFlight.from, m.limit)
		}
		switch {
		case m.full || !m.ramping():
		case n.load.inFlight == 0:
			inFlight.from = min(inFlight.from, 1)
		default:
			inFlight.below = max(inFlight.below, 1)
		}
	}
}

// eligible returns the ready set that m has a weight above 0 in, or nil.
func (m *Member) eligible() *ReadySet {
	if m.weight == 0 {
		return nil
	}
	return m.readySet
}

// updateEligibility keeps m in the order of its ready set that it belongs to.
func (m *Member) updateEligibility() {
	v := m.eligible()
	if was := m.eligibleIn; was != nil && (was != v || m.newcomer) {
		m.setFull(false, false)
		if m.order != nil {
			m.removePlace()
		}
		m.updateMinShare()
		was.setEligible(was.eligible - 1)
		m.eligibleIn = nil
	}
	if v != nil && m.eligibleIn == nil {
		v.setEligible(v.eligible + 1)
		m.eligibleIn = v
	}
	n := m.endpoint
	m.setFull(v != nil && n.load.sum() >= m.limit, v != nil && n.load.inFlight >= m.limit)
	in := m.belongsIn()
	if m.order != in && m.order != nil {
		m.removePlace()
	}
	switch {
	case in == nil:
	case m.order == nil:
		m.addPlace(in, m.newcomer)
	case m.placedAs != m.effectiveWeight():
		m.placedAs = m.effectiveWeight()
		m.order.SetWeight(m.handle, m.placedAs)
	}
	m.newcomer = false
	m.updateMinShare()
}

// belongsIn returns the order that m is to be in, nil when it may not be chosen.
func (m *Member) belongsIn() *choiceOrder {
	switch v := m.eligible(); {
	case v == nil || m.busy:
		return nil
	case m.full:
		return &v.overfull
	default:
		return &v.order
	}
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
	if v := m.eligibleIn; v != nil {
		count(&v.full, full, m.full)
		count(&v.busy, busy, m.busy)
	}
	m.full, m.busy = full, busy
}

// effectiveWeight returns the weight that m has now.
func (m *Member) effectiveWeight() float64 { return float64(m.weight) * m.slowStart.factor }
