package state

import (
	"slices"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

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
	lease, m := v.choose(nil)
	if m == nil {
		v.ledger.mu.Unlock()
		return Lease{}, nil, false
	}
	value := m.value
	v.ledger.mu.Unlock()
	return lease, value, true
}

// choose chooses among the members whose places are not excluded. It returns no
// member when there is none. Those that are excluded must be set aside.
func (v *ReadySet) choose(excluded []order.Handle) (Lease, *Member) {
	first := v.order.First()
	if first == order.None {
		return Lease{}, nil
	}
	m := v.order.Value(first)
	if len(v.minShare.members) > 0 {
		if due := v.nextDue(); due != nil && !slices.Contains(excluded, due.handle) {
			m = due
		}
	}
	v.picks++
	return v.ledger.newLease(m.endpoint, v.set), m
}

// chooseExcluding is choose among the members whose endpoints were not tried.
func (v *ReadySet) chooseExcluding(tried []*endpoint) (lease Lease, m *Member) {
	var excluded []order.Handle
	for _, n := range tried {
		if n.ledger != v.ledger {
			continue // the ready set has moved since
		}
		if m := n.memberOf(v.set); m != nil && m.eligibleIn == v && m.handle != order.None {
			excluded = append(excluded, m.handle)
		}
	}
	v.order.Excluding(excluded, func() { lease, m = v.choose(excluded) })
	return lease, m
}

// chooseIn chooses among the members whose endpoints were not tried, in the first
// ready set that has one with room. Without tries, later ready sets are for the room
// that the first one lacks: where it has nobody at a cap, it alone counts.
func chooseIn(sets []*ReadySet, tried []*endpoint) (lease Lease, m *Member, full bool) {
	for _, v := range sets {
		if len(tried) == 0 {
			lease, m = v.choose(nil)
		} else {
			lease, m = v.chooseExcluding(tried)
		}
		if m != nil {
			return lease, m, false
		}
		if full = full || v.full > 0; !full && len(tried) == 0 {
			break
		}
	}
	return Lease{}, nil, full
}
