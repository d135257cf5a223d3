package statetest

import (
	"math"
	"slices"
	"time"
)

// member is an address in an endpoint set's list.
type member struct {
	node   *node
	roster *roster
	view   int // none while not ready
	weight uint32
	limit  uint32 // 0: none

	seated bool    // it may be chosen
	taken  float64 // its weight then: a near one may have been there before
	either bool    // who of near ones was there before is chance
	before float64 // what taken was then

	cold   bool // its ramp begins when it is ready
	since  time.Duration
	climbs time.Duration
	share  float64

	waits bool // it is seated, empty and ramps
	last  int  // the ready set's picks when that began
}

// Set makes an address ready in a ready set.
func (m *Model) Set(id, view int, addr string, weight uint32) {
	mb := m.rosters[id].members[addr]
	if mb.view == view && mb.weight == weight && !mb.cold {
		return
	}
	moves := mb.view != view
	if mb.view != none {
		mb.unset()
	}
	mb.view, mb.weight = view, weight
	if mb.cold {
		mb.cold = false
		mb.since, mb.node.since = m.now, m.now
	}
	mb.ramp(m.now)
	mb.fit()
	if moves || weight == 0 {
		m.revoke(mb)
	}
	m.grant(mb.roster)
}

// Remove makes an address not ready.
func (m *Model) Remove(id int, addr string) { m.remove(m.rosters[id].members[addr]) }

func (m *Model) remove(mb *member) {
	if mb.view != none {
		mb.unset()
		m.revoke(mb)
	}
}

func (mb *member) unset() {
	mb.weight = 0
	mb.fit()
	mb.view, mb.share = none, 1
}

// Cap sets the address's cap.
func (m *Model) Cap(id int, addr string, limit uint32) {
	mb := m.rosters[id].members[addr]
	mb.limit = limit
	mb.fit()
	m.grant(mb.roster)
}

func (mb *member) takes() bool { return mb.view != none && mb.weight > 0 }

func (mb *member) full() bool {
	return mb.takes() && mb.limit > 0 && mb.node.inFlight >= int(mb.limit)
}

// fit seats mb while it may be chosen.
func (mb *member) fit() {
	if may := mb.takes() && !mb.full(); may != mb.seated {
		mb.seated = may
		mb.sit(mb.effective())
	}
	waits := mb.seated && mb.share < 1 && mb.node.inFlight == 0
	if waits && !mb.waits {
		mb.last = mb.roster.views[mb.view].picks
	}
	mb.waits = waits
}

func (mb *member) effective() float64 { return float64(mb.weight) * mb.share }

// sit has mb taken as having a weight, or one near it that is there.
func (mb *member) sit(weight float64) {
	mb.taken, mb.either = weight, false
	best := math.Inf(1)
	for _, o := range mb.roster.seated(mb.view) {
		d := math.Abs(weight - o.taken)
		if o != mb && d <= o.taken/(1<<16) && (d < best || d == best && o.taken < mb.taken) {
			mb.taken, best = o.taken, d
		}
	}
}

func (mb *member) score() float64 { return float64(mb.node.load()+1) / mb.taken }

// seated returns the members of a ready set that may be chosen, by address.
func (r *roster) seated(view int) []*member {
	return r.those(func(mb *member) bool { return mb.seated && mb.view == view })
}

func (r *roster) those(are func(mb *member) bool) []*member {
	var ms []*member
	for _, mb := range r.members {
		if are(mb) {
			ms = append(ms, mb)
		}
	}
	slices.SortFunc(ms, func(a, b *member) int {
		if a.node.addr < b.node.addr {
			return -1
		}
		return 1
	})
	return ms
}
