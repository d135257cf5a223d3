package state

import "slices"

// ReadySet holds the ready members of one endpoint set at one priority level, in the
// order in which they are chosen.
type ReadySet struct {
	set      *EndpointSet
	ledger   *Ledger
	priority uint32

	order    choiceOrder // of the members of a weight above 0
	overfull choiceOrder // of those that have no room because of penalties alone
	noRoom   choiceOrder // of those whose connections have none, and whose caps do
	picks    uint64      // ever
	eligible int         // members of a weight above 0
	full     int         // of those, the ones without room
	busy     int         // of those, the ones without room even if penalties took none

	connecting connecting
	young      *young // nil while reports are not used
}

// NewReadySet adds an empty ready set to the endpoint set. The priority level is
// shown in snapshots; ready sets do not know of each other.
func (r *EndpointSet) NewReadySet(priority uint32) *ReadySet {
	v := &ReadySet{set: r, ledger: r.ledger, priority: priority}
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	if !r.closed {
		if r.reports > 0 {
			v.young = newYoung(r.reports, &v.order)
		}
		r.readySets = append(r.readySets, v)
	}
	return v
}

// EndpointSet returns the endpoint set that the ready set is of.
func (v *ReadySet) EndpointSet() *EndpointSet { return v.set }

// Set makes m a ready member of the ready set, or changes the weight and the value
// of one. A member of another ready set of the endpoint set moves over. The count
// stays with the endpoint. A weight of 0 means drain: m is not chosen, its leases
// live on. So does a [Drain] of its endpoint, whatever the weight. A member that has left its endpoint set is passed over.
func (v *ReadySet) Set(m *Member, weight uint32, value any) {
	v.ledger.mu.Lock()
	defer v.ledger.mu.Unlock()
	if m.endpoint == nil || m.set != v.set || v.set.closed {
		return
	}
	m.value = value
	if m.eligibleIn == v {
		m.updateChoice()
	}
	if m.readySet == v && m.weight == weight && !m.slowStart.pending {
		return
	}
	was, draining := m.readySet, m.draining()
	m.readySet, m.weight, m.newcomer = v, weight, true
	m.beginSlowStart(v.ledger.clock.read())
	if was == nil || draining != m.draining() {
		m.since = v.ledger.clock.now
	}
	m.changed()
}

// Remove takes m out of the ready set: it is not ready, nor waited for. Its endpoint keeps the count.
// A member that is not in the ready set is passed over.
func (v *ReadySet) Remove(m *Member) {
	v.ledger.mu.Lock()
	defer v.ledger.mu.Unlock()
	if m.readySet == v {
		m.leaveReadySet()
	} else if c := m.connecting; c != nil && c.readySet == v {
		m.stopConnecting()
	}
}

// updateChoice brings in line what the orders hold of m.
func (m *Member) updateChoice() {
	if v := m.eligibleIn; v != nil {
		v.order.SetValue(m.anyHandle(), m.choice())
	}
	if m.fallbackIn != nil {
		m.fallbackIn.SetValue(m.fallback, m.choice())
	}
}

func (m *Member) leaveReadySet() {
	m.readySet, m.weight, m.value = nil, 0, nil
	m.changed()
	m.since = m.set.ledger.clock.now
}

// Close takes the ready set's members out of it, step by step, and the ready set off
// its endpoint set.
func (v *ReadySet) Close() {
	v.ledger.mu.Lock()
	defer v.ledger.mu.Unlock()
	steps := v.ledger.inSteps()
	for m := range v.set.members {
		if m.readySet == v {
			m.leaveReadySet()
			steps.did(unitChange)
		} else if c := m.connecting; c != nil && c.readySet == v {
			m.stopConnecting()
		}
	}
	if i := slices.Index(v.set.readySets, v); i >= 0 {
		v.set.readySets = slices.Delete(v.set.readySets, i, i+1)
		v.set.counters.Picks += v.picks
	}
}
