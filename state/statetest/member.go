package statetest

import (
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

	placed     bool    // it is in the ready set's order
	selectable bool    // there it may be chosen: it is not full
	aside      bool    // but for now
	class      float64 // its weight there: a near one may have been there before
	either     bool    // which of near ones was there before is chance
	before     float64 // what class was then

	slowStartPending bool // it begins when the member is ready
	since            time.Duration
	nextStep         time.Duration
	factor           float64
}

// Set makes an address ready in a ready set.
func (m *model) Set(id, readySet int, addr string, weight uint32) {
	mb := m.sets[id].members[addr]
	if mb.readySet == readySet && mb.weight == weight && !mb.slowStartPending {
		return
	}
	moves := mb.readySet != readySet
	stays := !moves && mb.eligible() && weight > 0
	if mb.readySet != none && !stays {
		mb.unset()
	}
	mb.readySet, mb.weight = readySet, weight
	if mb.slowStartPending {
		mb.slowStartPending = false
		mb.since, mb.endpoint.since = m.now, m.now
	}
	mb.advance(m.now)
	if stays {
		mb.reweigh()
	}
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
	return mb.eligible() && mb.limit > 0 && mb.endpoint.inFlight >= int(mb.limit)
}

// updateEligibility has mb in the order while it is eligible, and selectable while it is
// not full.
func (mb *member) updateEligibility() {
	switch may := mb.eligible(); {
	case may && !mb.placed:
		mb.enter()
	case !may && mb.placed:
		mb.leave()
	}
	if mb.placed {
		mb.setSelectable(!mb.full())
	}
}

func (mb *member) free() bool { return mb.selectable && !mb.aside }

func (mb *member) effective() float64 { return float64(mb.weight) * mb.factor }

// selectable returns the members of a ready set that may be chosen, by address.
func (r *endpointSet) selectable(readySet int) []*member {
	return r.those(func(mb *member) bool { return mb.selectable && mb.readySet == readySet })
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
