package state

import "slices"

// View holds the ready members of one roster at one priority level, in the
// order in which they are chosen. The ledger's mutex guards what is below it.
type View struct {
	roster   *Roster
	ledger   *Ledger
	priority uint32

	order  order
	picks  uint64 // ever
	waits  waits
	takers int // members of a weight above 0
	full   int // of those, the ones at their caps
}

// NewView adds an empty view to the roster. The priority level is shown in
// snapshots; views do not know of each other.
func (r *Roster) NewView(priority uint32) *View {
	v := &View{roster: r, ledger: r.ledger, priority: priority, order: newOrder()}
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	if r.members != nil {
		r.views = append(r.views, v)
	}
	return v
}

// Roster returns the roster that the view is of.
func (v *View) Roster() *Roster { return v.roster }

// Set makes m a ready member of the view, or changes the weight and the value
// of one; a member of another view of the roster moves over. The count stays
// with the node. A weight of 0 means drain: m is not chosen, its leases live
// on. A member that has left its roster is passed over.
func (v *View) Set(m *Member, weight uint32, value any) {
	v.ledger.mu.Lock()
	defer v.ledger.mu.Unlock()
	if m.node == nil || m.roster != v.roster {
		return
	}
	if m.view == v && m.weight == weight && !m.cold {
		m.value = value
		if m.seat != none {
			v.order.seats[m.seat].value = value
		}
		return
	}
	moves := m.view != v
	if m.view != nil {
		m.view.unset(m)
	}
	v.add(m, weight, value)
	if moves || weight == 0 {
		v.roster.revoke(m)
	}
	v.roster.grant()
}

func (v *View) add(m *Member, weight uint32, value any) {
	m.view, m.weight, m.value = v, weight, value
	m.warm(v.ledger.clock.read())
	if weight > 0 {
		v.takers++
		if m.node.inFlight < m.limit {
			v.order.place(m, m.effective(), value)
		}
	}
	m.node.refit()
}

// Remove takes m out of the view: it is not ready. Its node keeps the count. A
// member that is not in the view is passed over.
func (v *View) Remove(m *Member) {
	v.ledger.mu.Lock()
	defer v.ledger.mu.Unlock()
	if m.view == v {
		v.remove(m)
	}
}

func (v *View) remove(m *Member) {
	v.unset(m)
	v.roster.revoke(m)
}

// unset is remove, but leaves m what RPCs that wait were granted on it.
func (v *View) unset(m *Member) {
	if m.weight > 0 {
		v.takers--
		v.waits.stale = true
	}
	m.weight = 0 // which takes its seat
	m.node.refit()
	m.view, m.value = nil, nil
	m.ramp(v.ledger.clock.now)
}

// Acquire chooses a member with the lowest (in_flight + penalty + 1) / weight
// and counts one more RPC in flight on its node, in one step. It returns the
// member's value, and false when the view has no member to choose, or when RPCs
// wait for room: then it is for [Roster.Turn] to decide.
func (v *View) Acquire() (Lease, any, bool) {
	v.ledger.mu.Lock()
	if len(v.roster.queue.tickets) > 0 {
		v.ledger.mu.Unlock()
		return Lease{}, nil, false
	}
	lease, e, ok := v.acquire()
	v.ledger.mu.Unlock()
	return lease, e.value, ok
}

func (v *View) acquire() (Lease, entry, bool) {
	first := v.order.first()
	if first == nil {
		return Lease{}, entry{}, false
	}
	e := *first // lending may take the seat
	if len(v.waits.members) > 0 {
		if m := v.overdue(); m != nil {
			e = v.order.seats[m.seat].entry
		}
	}
	v.picks++
	return v.ledger.lend(e.node, v.roster), e, true
}

// Close takes the view's members out of it and the view off its roster.
func (v *View) Close() {
	v.ledger.mu.Lock()
	defer v.ledger.mu.Unlock()
	for m := range v.roster.members {
		if m.view == v {
			v.remove(m)
		}
	}
	if i := slices.Index(v.roster.views, v); i >= 0 {
		v.roster.views = slices.Delete(v.roster.views, i, i+1)
		v.roster.account.Picks += v.picks
	}
}
