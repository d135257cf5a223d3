package state

import (
	"errors"
	"fmt"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// checkSlots asserts that the lease entries in use are the live leases.
func (l *Ledger) checkSlots() error {
	live := int64(0)
	for i, s := range l.leaseEntries {
		if s.index != i {
			return fmt.Errorf("slot %d is not at its place", i)
		}
		if s.endpoint != nil {
			live++
		}
	}
	if live != l.leases || len(l.leaseEntries) != int(live)+len(l.free) {
		return fmt.Errorf("%d slots in use and %d free of %d with %d live leases", live, len(l.free), len(l.leaseEntries), l.leases)
	}
	return nil
}

// checkGuards asserts that the ledger knows what its clock has to do.
func (l *Ledger) checkGuards() error {
	waiting := 0
	for r := range l.sets {
		waiting += r.queue.line.Len()
	}
	ramping := 0
	for n := range l.endpoints {
		if _, ok := l.penalized[n]; ok != (n.penalty > 0) {
			return fmt.Errorf("endpoint %q with penalty %d is fined: %t", n.addrs, n.penalty, ok)
		}
		for _, m := range n.members {
			if m.ramping() {
				ramping++
			}
		}
	}
	for n := range l.penalized {
		if _, ok := l.endpoints[n]; !ok {
			return fmt.Errorf("endpoint %q is gone and fined", n.addrs)
		}
	}
	switch {
	case waiting != l.waiting:
		return fmt.Errorf("%d RPCs in line, %d waiting", waiting, l.waiting)
	case ramping != len(l.ramping):
		return fmt.Errorf("%d members ramp, %d are known to", ramping, len(l.ramping))
	case !l.clock.ticking && len(l.penalized)+len(l.ramping) > 0:
		return errors.New("the clock rests with penalties or ramps")
	}
	return nil
}

// checkLoad asserts that an endpoint's load is its count and its penalty.
func (n *endpoint) checkLoad() error {
	var sum int64
	for i, f := range n.penalties {
		sum += f.units
		if f.units <= 0 || i > 0 && n.penalties[i-1].until >= f.until {
			return fmt.Errorf("endpoint %q: fine %d of %d units is out of order", n.addrs, i, f.units)
		}
	}
	if sum != n.penalty || n.load != n.inFlight+n.penalty {
		return fmt.Errorf("endpoint %q: load %d of count %d and penalty %d, fines %d", n.addrs, n.load, n.inFlight, n.penalty, sum)
	}
	return nil
}

// check asserts that m has a handle exactly while it may be chosen, and waits
// exactly while it is empty then and ramps.
func (m *Member) check() error {
	var errs []error
	takes := m.readySet != nil && m.weight > 0
	full := takes && m.endpoint.inFlight >= m.limit
	if m.full != full || (m.handle != order.None) != (takes && !full) {
		errs = append(errs, fmt.Errorf("member %q with weight %d, %d of %d in flight, full: %t, has handle %d",
			m.addrs, m.weight, m.endpoint.inFlight, m.limit, m.full, m.handle))
	}
	if waits := m.handle != order.None && m.ramping() && m.endpoint.inFlight == 0; waits != (m.place != none) {
		errs = append(errs, fmt.Errorf("member %q, ramping: %t, %d in flight, has place %d", m.addrs, m.ramping(), m.endpoint.inFlight, m.place))
	}
	if n := m.endpoint; full && n.roomBelow < m.limit || takes && !full && n.fullAt > m.limit ||
		m.handle != order.None && m.ramping() && (n.inFlight == 0 && n.fullAt > 1 || n.inFlight > 0 && n.roomBelow < 1) {
		errs = append(errs, fmt.Errorf("member %q, limit %d: its endpoint looks again at %d and below %d", m.addrs, m.limit, n.fullAt, n.roomBelow))
	}
	return errors.Join(errs...)
}

func (v *ReadySet) check() error {
	takers, full := 0, 0
	for m := range v.set.members {
		if m.readySet == v && m.weight > 0 {
			takers++
		}
		if m.readySet == v && m.full {
			full++
		}
	}
	if takers != v.eligible || full != v.full {
		return fmt.Errorf("ready set with %d takers and %d full has %d and %d", v.eligible, v.full, takers, full)
	}
	for i, m := range v.waits.members {
		if m.readySet != v || m.place != int32(i) || i > 0 && v.waits.members[(i-1)/2].due > m.due {
			return fmt.Errorf("member %q waits at the wrong place %d", m.addrs, i)
		}
	}
	return nil
}

// checkQueue asserts that tickets wait in order of arrival or hold a lease, and
// that none waits while there is room for it.
func (r *EndpointSet) checkQueue() error {
	q := &r.queue
	last, inLine := uint64(0), 0
	for e := q.line.Front(); e != nil; e = e.Next() {
		t := e.Value.(*waiter)
		inLine++
		if t.arrival <= last || t.at != e || q.waiters[t.rpc] != t {
			return fmt.Errorf("endpoint set %q: ticket %d is out of line", r.name, t.arrival)
		}
		last = t.arrival
	}
	granted := 0
	for _, t := range q.waiters {
		if t.at == nil {
			granted++
			if s := t.lease.entry; s == nil || s.gen != t.lease.gen || t.member.readySet == nil || s.endpoint != t.member.endpoint {
				return fmt.Errorf("endpoint set %q: ticket %d was granted nothing", r.name, t.arrival)
			}
		}
	}
	if inLine+granted != len(q.waiters) {
		return fmt.Errorf("endpoint set %q: %d tickets, %d in line, %d granted", r.name, len(q.waiters), inLine, granted)
	}
	for i, v := range q.queueSets {
		if inLine > 0 && v.order.Len() > 0 && (i == 0 || q.queueSets[0].full > 0) {
			return fmt.Errorf("endpoint set %q: RPCs wait while there is room", r.name)
		}
	}
	return nil
}
