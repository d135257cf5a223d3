package statetest

import (
	"slices"
	"time"
)

// member is an address in an endpoint set's list.
type member struct {
	endpoint   *endpoint
	set        *endpointSet
	readySet   int // none while not ready
	weight     uint32
	drained    bool
	limit      uint32 // 0: none
	connection *connection

	connecting connecting
	seats      [kinds]seat

	slowStartPending bool // it begins when the member is ready
	since            time.Duration
	nextStep         time.Duration
	factor           float64
}

// Set makes an address ready in a ready set.
func (m *model) Set(id, readySet int, addr string, weight uint32) {
	defer m.settle()
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
	m.updateConnecting(mb)
	m.revoke(mb)
}

// Remove makes an address not ready, nor waited for.
func (m *model) Remove(id int, addr string) {
	defer m.settle()
	mb := m.sets[id].members[addr]
	m.remove(mb)
	m.stopConnecting(mb)
}

func (m *model) remove(mb *member) {
	if mb.readySet != none {
		mb.unset()
		m.updateConnecting(mb)
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
	defer m.settle()
	mb := m.sets[id].members[addr]
	mb.limit = limit
	mb.updateEligibility()
	m.grant(mb.set)
}

func (mb *member) eligible() bool { return mb.readySet != none && mb.weight > 0 && !mb.drained }

func (mb *member) full() bool {
	return mb.eligible() && (mb.connection.fullWith(mb.failed()) || mb.overCap())
}

// overCap reports whether mb is at its cap, penalties included.
func (mb *member) overCap() bool { return mb.limit > 0 && mb.endpoint.rpcs() >= int(mb.limit) }

func (mb *member) busy() bool {
	return mb.eligible() && (mb.connection.full() || mb.atCap())
}

func (mb *member) atCap() bool { return mb.limit > 0 && len(mb.endpoint.leases) >= int(mb.limit) }

// fallback returns which other order mb is to be in, withRoom for none.
func (mb *member) fallback() orderKind {
	switch {
	case mb.full() && !mb.busy():
		return overfull
	case mb.full() && !mb.atCap():
		return noRoom
	}
	return withRoom
}

func (mb *member) order(kind orderKind) *order { return mb.set.readySets[mb.readySet].orders[kind] }

// updateEligibility has mb in the order while it is eligible, selectable there while it
// is not full, and in another order while penalties alone fill it, or its connection.
func (mb *member) updateEligibility() {
	room, is := &mb.seats[withRoom], mb.fallback()
	for kind := overfull; kind < kinds; kind++ {
		if mb.seats[kind].placed && kind != is {
			mb.order(kind).leave(mb)
		}
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
	if is != withRoom && !mb.seats[is].placed {
		mb.order(is).enter(mb, room.class)
	}
}

// reweigh gives mb the class of its weight in the order, and the same one in the other.
func (mb *member) reweigh() {
	mb.order(withRoom).reweigh(mb, mb.effective())
	if is := mb.fallback(); mb.seats[is].placed && is != withRoom {
		mb.order(is).reweigh(mb, mb.seats[withRoom].class)
	}
}

// updateEligibility does so for n's members.
func (n *endpoint) updateEligibility() {
	for _, mb := range n.members {
		mb.updateEligibility()
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
