package state

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// check asserts that the endpoint set, its members and its ready sets agree.
func (r *EndpointSet) check() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("endpoint set %q: "+format, append([]any{r.name}, args...)...))
	}
	placed, waiting := 0, 0
	for m := range r.members {
		if m.endpoint == nil || !slices.Contains(m.endpoint.members, m) {
			fail("member %q is not its endpoint's", m.addrs)
			continue
		}
		if m.leaving || m.newcomer {
			fail("member %q is still leaving or new", m.addrs)
		}
		errs = append(errs, m.check())
		if m.handle == order.None {
			continue
		}
		placed++
		if m.readySet == nil || !slices.Contains(r.readySets, m.readySet) {
			fail("member %q is in the order of no ready set", m.addrs)
			continue
		}
		p := place{&m.readySet.order, m.handle}
		if c := p.order.Value(m.handle); c.member != m || c.endpoint != m.endpoint || !slices.Contains(m.endpoint.places, p) {
			fail("member %q is not at handle %d", m.addrs, m.handle)
		}
	}
	for _, v := range r.readySets {
		placed -= v.order.Len()
		errs = append(errs, v.order.Check(choice.standing), v.check())
	}
	if placed != 0 {
		fail("%d members more than the orders have", placed)
	}
	for s := range r.ledger.sets {
		waiting += s.queue.line.Len()
	}
	if waiting != r.ledger.waiting {
		fail("%d RPCs in line, %d waiting", waiting, r.ledger.waiting)
	}
	return errors.Join(errs...)
}

// standing returns by what c is to stand in its order.
func (c choice) standing() (weight float64, load int64) {
	return c.member.effectiveWeight(), c.endpoint.load.sum()
}

// check asserts that m is in the order exactly while it may be chosen, has a minimal
// share exactly while it is empty then and ramps, and is looked at again in time.
func (m *Member) check() error {
	n := m.endpoint
	v := m.eligible()
	full := v != nil && n.load.inFlight >= m.limit
	may := v != nil && !full
	minShare := may && m.ramping() && n.load.inFlight == 0
	again := !full || n.roomBelow >= m.limit
	again = again && (!may || n.fullAt <= m.limit)
	if may && m.ramping() {
		again = again && (n.load.inFlight > 0 || n.fullAt <= 1) && (n.load.inFlight == 0 || n.roomBelow >= 1)
	}
	if m.eligibleIn != v || m.full != full || (m.handle != order.None) != may ||
		(m.minShare.index != none) != minShare || !again || v == nil && m.ramping() {
		return fmt.Errorf("member %q with weight %d, ramping: %t, %d of %d in flight: eligible: %t, full: %t, at %d, at %d in the heap, again at %d and below %d",
			m.addrs, m.weight, m.ramping(), n.load.inFlight, m.limit,
			m.eligibleIn == v, m.full, m.handle, m.minShare.index, n.fullAt, n.roomBelow)
	}
	return nil
}

func (v *ReadySet) check() error {
	eligible, full := 0, 0
	for m := range v.set.members {
		if m.eligibleIn == v {
			eligible++
			if m.full {
				full++
			}
		}
	}
	if eligible != v.eligible || full != v.full {
		return fmt.Errorf("ready set with %d eligible and %d full has %d and %d", v.eligible, v.full, eligible, full)
	}
	for i, m := range v.minShare.members {
		s := m.minShare
		if m.eligibleIn != v || s.index != int32(i) || i > 0 && v.minShare.members[(i-1)/2].minShare.due > s.due {
			return fmt.Errorf("member %q is at the wrong index %d of the heap", m.addrs, i)
		}
	}
	return nil
}

// checkRamps asserts that the endpoint set knows which of its members start slowly, and
// when their factors are to rise.
func (r *EndpointSet) checkRamps() error {
	ramping := 0
	for m := range r.members {
		if m.ramping() {
			ramping++
		}
		if m.ramping() != (m.slowStart.ramp != noRamp) {
			return fmt.Errorf("member %q ramps: %t, at %d", m.addrs, m.ramping(), m.slowStart.ramp)
		}
	}
	for i, p := range r.ramps {
		if s := p.member.slowStart; s.ramp != i || s.nextStep != p.nextStep {
			return fmt.Errorf("member %q has its next step at %v, its ramp %d at %v", p.member.addrs, s.nextStep, i, p.nextStep)
		}
	}
	if ramping != len(r.ramps) {
		return fmt.Errorf("endpoint set %q: %d members ramp, %d are known to", r.name, ramping, len(r.ramps))
	}
	return nil
}

// checkQueue asserts that waiters are queued in order of arrival or hold a lease, and
// that none is queued while there is room for it.
func (r *EndpointSet) checkQueue() error {
	q := &r.queue
	if r.closed && len(q.waiters) > 0 {
		return fmt.Errorf("endpoint set %q is closed, and %d RPCs wait", r.name, len(q.waiters))
	}
	last, queued := uint64(0), 0
	for e := q.line.Front(); e != nil; e = e.Next() {
		w := e.Value.(*waiter)
		queued++
		if w.arrival <= last || w.element != e || q.waiters[w.rpc] != w {
			return fmt.Errorf("endpoint set %q: waiter %d is out of line", r.name, w.arrival)
		}
		last = w.arrival
	}
	granted := 0
	for _, w := range q.waiters {
		if w.queued() {
			continue
		}
		granted++
		if s := w.lease.entry; s == nil || s.gen != w.lease.gen || s.endpoint != w.member.endpoint || w.readySet == nil || w.readySet != w.member.eligible() {
			return fmt.Errorf("endpoint set %q: waiter %d was granted nothing", r.name, w.arrival)
		}
	}
	if queued+granted != len(q.waiters) {
		return fmt.Errorf("endpoint set %q: %d waiters, %d queued, %d granted", r.name, len(q.waiters), queued, granted)
	}
	for i, v := range q.queueSets {
		if queued > 0 && v.order.Len() > 0 && (i == 0 || q.queueSets[0].full > 0) {
			return fmt.Errorf("endpoint set %q: RPCs wait while there is room", r.name)
		}
	}
	return nil
}
