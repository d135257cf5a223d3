package state

import (
	"slices"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// ReadySet holds the ready members of one endpoint set at one priority level, in the
// order in which they are chosen. The ledger's mutex guards what is below it.
type ReadySet struct {
	set      *EndpointSet
	ledger   *Ledger
	priority uint32

	order    order.Order[choice]
	picks    uint64 // ever
	waits    waits
	eligible int // members of a weight above 0
	full     int // of those, the ones at their caps
}

// NewView adds an empty ready set to the endpoint set. The priority level is shown in
// snapshots; ready sets do not know of each other.
func (r *EndpointSet) NewReadySet(priority uint32) *ReadySet {
	v := &ReadySet{set: r, ledger: r.ledger, priority: priority}
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	if r.members != nil {
		r.readySets = append(r.readySets, v)
	}
	return v
}

// EndpointSet returns the endpoint set that the ready set is of.
func (v *ReadySet) EndpointSet() *EndpointSet { return v.set }

// Set makes m a ready member of the ready set, or changes the weight and the value
// of one; a member of another ready set of the endpoint set moves over. The count stays
// with the endpoint. A weight of 0 means drain: m is not chosen, its leases live
// on. A member that has left its endpoint set is passed over.
func (v *ReadySet) Set(m *Member, weight uint32, value any) {
	v.ledger.mu.Lock()
	defer v.ledger.mu.Unlock()
	if m.endpoint == nil || m.set != v.set {
		return
	}
	if m.readySet == v && m.weight == weight && !m.slowStartPending {
		m.value = value
		if m.handle != order.None {
			v.order.SetValue(m.handle, m.choice())
		}
		return
	}
	moves := m.readySet != v
	if m.readySet != nil {
		m.readySet.unset(m)
	}
	v.add(m, weight, value)
	if moves || weight == 0 {
		v.set.revoke(m)
	}
	v.set.grant()
}

func (v *ReadySet) add(m *Member, weight uint32, value any) {
	m.readySet, m.weight, m.value = v, weight, value
	m.beginSlowStart(v.ledger.clock.read())
	if weight > 0 {
		v.eligible++
		if m.endpoint.inFlight < m.limit {
			m.addPlace(v.order.Insert(m.effectiveWeight(), m.endpoint.load, m.choice()))
		}
	}
	m.endpoint.updateEligibility()
}

// Remove takes m out of the ready set: it is not ready. Its endpoint keeps the count. A
// member that is not in the ready set is passed over.
func (v *ReadySet) Remove(m *Member) {
	v.ledger.mu.Lock()
	defer v.ledger.mu.Unlock()
	if m.readySet == v {
		v.remove(m)
	}
}

func (v *ReadySet) remove(m *Member) {
	v.unset(m)
	v.set.revoke(m)
}

// unset is remove, but leaves m what RPCs that wait were granted on it.
func (v *ReadySet) unset(m *Member) {
	if m.weight > 0 {
		v.eligible--
		v.waits.stale = true
	}
	m.weight = 0 // which takes it out of the order
	m.endpoint.updateEligibility()
	m.readySet, m.value = nil, nil
	m.ramp(v.ledger.clock.now)
}

// Acquire chooses a member with the lowest (in_flight + penalty + 1) / weight
// and counts one more RPC in flight on its endpoint, in one step. It returns the
// member's value, and false when the ready set has no member to choose, or when RPCs
// wait for room: then it is for [EndpointSet.AcquireOrQueue] to decide.
func (v *ReadySet) Acquire() (Lease, any, bool) {
	v.ledger.mu.Lock()
	if len(v.set.queue.waiters) > 0 {
		v.ledger.mu.Unlock()
		return Lease{}, nil, false
	}
	lease, c := v.acquire()
	v.ledger.mu.Unlock()
	return lease, c.value, c.member != nil
}

// acquire returns no member when there is none to choose.
func (v *ReadySet) acquire() (Lease, choice) {
	first := v.order.First()
	if first == order.None {
		return Lease{}, choice{}
	}
	c := v.order.Value(first)
	if len(v.waits.members) > 0 {
		if due := v.overdue(); due != nil {
			c = due.choice()
		}
	}
	v.picks++
	return v.ledger.lend(c.endpoint, v.set), c
}

// Close takes the ready set's members out of it and the ready set off its endpoint set.
func (v *ReadySet) Close() {
	v.ledger.mu.Lock()
	defer v.ledger.mu.Unlock()
	for m := range v.set.members {
		if m.readySet == v {
			v.remove(m)
		}
	}
	if i := slices.Index(v.set.readySets, v); i >= 0 {
		v.set.readySets = slices.Delete(v.set.readySets, i, i+1)
		v.set.account.Picks += v.picks
	}
}
