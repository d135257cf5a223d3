package statetest

import (
	"math"
	"slices"
	"time"
)

// member is an address in an endpoint set's list.
type member struct {
	endpoint *endpoint
	set      *endpointSet
	readySet int // none while not ready
	weight   uint32
	limit    uint32 // 0: none

	in          orderKind // nowhere while it may not be chosen
	classWeight float64   // its weight in the order: a near one may have been there before
	either      bool      // which of near ones was there before is chance
	before      float64   // what classWeight was then

	slowStartPending bool // it begins when the member is ready
	since            time.Duration
	nextStep         time.Duration
	factor           float64

	minShare bool // it is selectable, empty and starts slowly
	last     int  // the ready set's picks when that began
}

// orderKind tells the orders of a ready set apart.
type orderKind int

const (
	nowhere orderKind = iota
	withRoom
	overfull // by penalties alone
)

// Set makes an address ready in a ready set.
func (m *model) Set(id, readySet int, addr string, weight uint32) {
	mb := m.sets[id].members[addr]
	if mb.readySet == readySet && mb.weight == weight && !mb.slowStartPending {
		return
	}
	moves := mb.readySet != readySet
	if mb.readySet != none {
		mb.unset()
	}
	mb.readySet, mb.weight = readySet, weight
	if mb.slowStartPending {
		mb.slowStartPending = false
		mb.since, mb.endpoint.since = m.now, m.now
	}
	mb.advance(m.now)
	mb.updateEligibility()
	if moves || weight == 0 {
		m.revoke(mb)
	}
	m.grant(mb.set)
}

// Remove makes an address not ready.
func (m *model) Remove(id int, addr string) { m.remove(m.sets[id].members[addr]) }

func (m *model) remove(mb *member) {
	if mb.readySet != none {
		mb.unset()
		m.revoke(mb)
	}
}

func (mb *member) unset() {
	mb.weight = 0
	mb.updateEligibility()
	mb.readySet, mb.factor = none, 1
}

// Cap sets the address's cap.
func (m *model) Cap(id int, addr string, limit uint32) {
	mb := m.sets[id].members[addr]
	mb.limit = limit
	mb.updateEligibility()
	m.grant(mb.set)
}

func (mb *member) eligible() bool { return mb.readySet != none && mb.weight > 0 }

func (mb *member) full() bool {
	return mb.eligible() && mb.limit > 0 && mb.endpoint.load() >= int(mb.limit)
}

func (mb *member) busy() bool {
	return mb.eligible() && mb.limit > 0 && mb.endpoint.inFlight >= int(mb.limit)
}

// updateEligibility puts mb into the order that it belongs to.
func (mb *member) updateEligibility() {
	in := nowhere
	switch {
	case !mb.eligible() || mb.busy():
	case mb.full():
		in = overfull
	default:
		in = withRoom
	}
	if in != mb.in {
		mb.in = in
		mb.classify(mb.effective())
	}
	waits := mb.in == withRoom && mb.factor < 1 && mb.endpoint.inFlight == 0
	if waits && !mb.minShare {
		mb.last = mb.set.readySets[mb.readySet].picks
	}
	mb.minShare = waits
}

func (mb *member) effective() float64 { return float64(mb.weight) * mb.factor }

// classify gives mb a weight in the order: its own, or one near it that is there.
func (mb *member) classify(weight float64) {
	mb.classWeight, mb.either = weight, false
	best := math.Inf(1)
	for _, o := range mb.set.selectable(mb.readySet, mb.in) {
		d := math.Abs(weight - o.classWeight)
		if o != mb && d <= o.classWeight/(1<<16) && (d < best || d == best && o.classWeight < mb.classWeight) {
			mb.classWeight, best = o.classWeight, d
		}
	}
}

func (mb *member) score() float64 { return float64(mb.endpoint.load()+1) / mb.classWeight }

// selectable returns the members of a ready set's order, by address.
func (r *endpointSet) selectable(readySet int, in orderKind) []*member {
	return r.those(func(mb *member) bool { return in != nowhere && mb.in == in && mb.readySet == readySet })
}

func (r *endpointSet) those(are func(mb *member) bool) []*member {
	var ms []*member
	for _, mb := range r.members {
		if are(mb) {
			ms = append(ms, mb)
		}
	}
	slices.SortFunc(ms, func(a, b *member) int {
		if a.endpoint.addr < b.endpoint.addr {
			return -1
		}
		return 1
	})
	return ms
}
