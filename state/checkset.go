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
		h := m.anyHandle()
		if h == order.None {
			continue
		}
		if m.readySet == nil || !slices.Contains(r.readySets, m.readySet) {
			fail("member %q is in the order of no ready set", m.addrs)
			continue
		}
		if c := m.readySet.order.Value(h); c.member != m || c.endpoint != m.endpoint {
			fail("member %q is not at handle %d", m.addrs, h)
		}
		if m.handle == order.None {
			continue
		}
		placed++
		p := place{&m.readySet.order, m.handle}
		if !slices.Contains(m.endpoint.places, p) {
			fail("member %q has no place at handle %d", m.addrs, m.handle)
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
		waiting += s.queue.queued.Len()
	}
	if waiting != r.ledger.waiting {
		fail("%d RPCs queued, %d waiting", waiting, r.ledger.waiting)
	}
	return errors.Join(errs...)
}

// standing returns by what c is to stand in its order.
func (c choice) standing() order.Standing {
	return order.Standing{Weight: c.member.effectiveWeight(), Load: c.endpoint.load.sum(), Suspended: c.member.full}
}

// check asserts that m is in the order exactly while it is eligible, suspended there
// exactly while it is full, and is looked at again in time.
func (m *Member) check() error {
	n := m.endpoint
	v := m.eligible()
	full := v != nil && n.load.inFlight >= m.limit
	may := v != nil && !full
	again := (!full || n.roomBelow >= m.limit) && (!may || n.fullAt <= m.limit)
	if m.eligibleIn != v || m.full != full || (m.handle != order.None) != may || (m.suspended != order.None) != full ||
		!again || v == nil && m.ramping() {
		return fmt.Errorf("member %q with weight %d, ramping: %t, %d of %d in flight: eligible: %t, full: %t, at %d, suspended at %d, again at %d and below %d",
			m.addrs, m.weight, m.ramping(), n.load.inFlight, m.limit,
			m.eligibleIn == v, m.full, m.handle, m.suspended, n.fullAt, n.roomBelow)
	}
	return nil
}

func (v *ReadySet) check() error {
	full := 0
	for m := range v.set.members {
		if m.eligibleIn == v && m.full {
			full++
		}
	}
	if full != v.full {
		return fmt.Errorf("ready set with %d full has %d", v.full, full)
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
	for e := q.queued.Front(); e != nil; e = e.Next() {
		w := e.Value.(*waiter)
		queued++
		if w.arrival <= last || w.element != e || q.waiters[w.rpc] != w {
			return fmt.Errorf("endpoint set %q: waiter %d is out of order", r.name, w.arrival)
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
