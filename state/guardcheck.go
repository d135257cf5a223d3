package state

import (
	"errors"
	"fmt"
)

// checkSlots asserts that the slots in use are the live leases.
func (l *Ledger) checkSlots() error {
	live := int64(0)
	for i, s := range l.slots {
		if s.index != i {
			return fmt.Errorf("slot %d is not at its place", i)
		}
		if s.node != nil {
			live++
		}
	}
	if live != l.leases || len(l.slots) != int(live)+len(l.free) {
		return fmt.Errorf("%d slots in use and %d free of %d with %d live leases", live, len(l.free), len(l.slots), l.leases)
	}
	return nil
}

// checkGuards asserts that the ledger knows what its clock has to do.
func (l *Ledger) checkGuards() error {
	waiting := 0
	for r := range l.rosters {
		waiting += r.queue.line.Len()
	}
	ramping := 0
	for n := range l.nodes {
		if _, ok := l.fined[n]; ok != (n.penalty > 0) {
			return fmt.Errorf("node %q with penalty %d is fined: %t", n.addrs, n.penalty, ok)
		}
		for _, m := range n.members {
			if m.ramping() {
				ramping++
			}
		}
	}
	for n := range l.fined {
		if _, ok := l.nodes[n]; !ok {
			return fmt.Errorf("node %q is gone and fined", n.addrs)
		}
	}
	switch {
	case waiting != l.waiting:
		return fmt.Errorf("%d RPCs in line, %d waiting", waiting, l.waiting)
	case ramping != len(l.ramping):
		return fmt.Errorf("%d members ramp, %d are known to", ramping, len(l.ramping))
	case !l.clock.ticking && len(l.fined)+len(l.ramping) > 0:
		return errors.New("the clock rests with penalties or ramps")
	}
	return nil
}

// checkLoad asserts that a node's load is its count and its penalty.
func (n *node) checkLoad() error {
	var sum int64
	for i, f := range n.fines {
		sum += f.units
		if f.units <= 0 || i > 0 && n.fines[i-1].until >= f.until {
			return fmt.Errorf("node %q: fine %d of %d units is out of order", n.addrs, i, f.units)
		}
	}
	if sum != n.penalty || n.load != n.inFlight+n.penalty {
		return fmt.Errorf("node %q: load %d of count %d and penalty %d, fines %d", n.addrs, n.load, n.inFlight, n.penalty, sum)
	}
	return nil
}

// check asserts that m has a seat exactly while it may be chosen, and waits
// exactly while it is empty then and ramps.
func (m *Member) check() error {
	var errs []error
	takes := m.view != nil && m.weight > 0
	full := takes && m.node.inFlight >= m.limit
	if m.full != full || (m.seat != none) != (takes && !full) {
		errs = append(errs, fmt.Errorf("member %q with weight %d, %d of %d in flight, full: %t, has seat %d",
			m.addrs, m.weight, m.node.inFlight, m.limit, m.full, m.seat))
	}
	if waits := m.seat != none && m.ramping() && m.node.inFlight == 0; waits != (m.place != none) {
		errs = append(errs, fmt.Errorf("member %q, ramping: %t, %d in flight, has place %d", m.addrs, m.ramping(), m.node.inFlight, m.place))
	}
	if n := m.node; full && n.low < m.limit || takes && !full && n.high > m.limit ||
		m.seat != none && m.ramping() && (n.inFlight == 0 && n.high > 1 || n.inFlight > 0 && n.low < 1) {
		errs = append(errs, fmt.Errorf("member %q, limit %d: its node looks again at %d and below %d", m.addrs, m.limit, n.high, n.low))
	}
	return errors.Join(errs...)
}

func (v *View) check() error {
	takers, full := 0, 0
	for m := range v.roster.members {
		if m.view == v && m.weight > 0 {
			takers++
		}
		if m.view == v && m.full {
			full++
		}
	}
	if takers != v.takers || full != v.full {
		return fmt.Errorf("view with %d takers and %d full has %d and %d", v.takers, v.full, takers, full)
	}
	for i, m := range v.waits.members {
		if m.view != v || m.place != int32(i) || i > 0 && v.waits.members[(i-1)/2].due > m.due {
			return fmt.Errorf("member %q waits at the wrong place %d", m.addrs, i)
		}
	}
	return nil
}

// checkQueue asserts that tickets wait in order of arrival or hold a lease, and
// that none waits while there is room for it.
func (r *Roster) checkQueue() error {
	q := &r.queue
	last, inLine := uint64(0), 0
	for e := q.line.Front(); e != nil; e = e.Next() {
		t := e.Value.(*ticket)
		inLine++
		if t.arrival <= last || t.at != e || q.tickets[t.rpc] != t {
			return fmt.Errorf("roster %q: ticket %d is out of line", r.name, t.arrival)
		}
		last = t.arrival
	}
	granted := 0
	for _, t := range q.tickets {
		if t.at == nil {
			granted++
			if s := t.lease.slot; s == nil || s.gen != t.lease.gen || t.member.view == nil || s.node != t.member.node {
				return fmt.Errorf("roster %q: ticket %d was granted nothing", r.name, t.arrival)
			}
		}
	}
	if inLine+granted != len(q.tickets) {
		return fmt.Errorf("roster %q: %d tickets, %d in line, %d granted", r.name, len(q.tickets), inLine, granted)
	}
	for i, v := range q.serving {
		if inLine > 0 && v.order.first() != nil && (i == 0 || q.serving[0].full > 0) {
			return fmt.Errorf("roster %q: RPCs wait while there is room", r.name)
		}
	}
	return nil
}
