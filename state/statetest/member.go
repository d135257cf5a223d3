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

	seats [kinds]seat

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
	return mb.eligible() && mb.limit > 0 && mb.endpoint.load() >= int(mb.limit)
}

func (mb *member) busy() bool {
	return mb.eligible() && mb.limit > 0 && mb.endpoint.inFlight >= int(mb.limit)
}

func (mb *member) order(kind orderKind) *order { return mb.set.readySets[mb.readySet].orders[kind] }

// updateEligibility has mb in the order while it is eligible, selectable there while it
// is not full, and in the other order while penalties alone fill it.
func (mb *member) updateEligibility() {
	room, over := &mb.seats[withRoom], &mb.seats[overfull]
	is := mb.full() && !mb.busy()
	if over.placed && !is {
		mb.order(overfull).leave(mb)
	}
	switch may := mb.eligible(); {
	case may && !room.placed:
		mb.order(withRoom).enter(mb, mb.effective())
	case !may && room.placed:
		mb.order(withRoom).leave(mb)
	}
	if room.placed {
		mb.order(withRoom).setSelectable(mb, !mb.full())
	}
	if is && !over.placed {
		mb.order(overfull).enter(mb, room.class)
	}
}

// reweigh gives mb the class of its weight in the order, and the same one in the other.
func (mb *member) reweigh() {
	mb.order(withRoom).reweigh(mb, mb.effective())
	if mb.seats[overfull].placed {
		mb.order(overfull).reweigh(mb, mb.seats[withRoom].class)
	}
}

func (mb *member) effective() float64 { return float64(mb.weight) * mb.factor }

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
