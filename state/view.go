package state

import "slices"

// View holds the ready members of one roster at one priority level, in the
// order in which they are chosen.
type View struct {
	roster   *Roster
	ledger   *Ledger
	priority uint32
	order    order // guarded by the ledger's mutex
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
	if m.view == v && m.weight == weight {
		if m.seat != none {
			v.order.seats[m.seat].value = value
		}
		return
	}
	if m.view != nil {
		m.view.remove(m)
	}
	m.view, m.weight = v, weight
	if weight > 0 {
		v.order.place(m, float64(weight), value)
	}
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
	if m.seat != none {
		v.order.remove(m)
	}
	m.view, m.weight = nil, 0
}

// Acquire chooses a member with the lowest (in_flight + 1) / weight and counts
// one more RPC in flight on its node, in one step. It returns the member's
// value, and false when the view has no member to choose.
func (v *View) Acquire() (Lease, any, bool) {
	v.ledger.mu.Lock()
	lease, value, ok := v.acquire()
	v.ledger.mu.Unlock()
	return lease, value, ok
}

func (v *View) acquire() (Lease, any, bool) {
	e := v.order.first()
	if e == nil {
		return Lease{}, nil, false
	}
	return v.ledger.lend(e.node), e.value, true
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
	v.roster.views = slices.DeleteFunc(v.roster.views, func(o *View) bool { return o == v })
}
