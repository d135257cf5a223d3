package state

import (
	"errors"
	"fmt"
	"slices"
)

// Check returns what is wrong in the ledger, nil when all invariants hold. It
// costs O(n) in all that the ledger holds, under its mutex: it is for tests.
func (l *Ledger) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	var sum int64
	for n := range l.endpoints {
		sum += n.load.inFlight
		errs = append(errs, n.check(), n.checkLoad(), n.checkLeases(), n.checkDrains())
	}
	if sum != l.leases || sum < 0 {
		errs = append(errs, fmt.Errorf("the terms in flight add up to %d with %d live leases", sum, l.leases))
	}
	for id, n := range l.byID {
		if _, ok := l.endpoints[n]; !ok || n.id != id {
			errs = append(errs, fmt.Errorf("id %q leads to an endpoint with id %q, in the ledger: %t", id, n.id, ok))
		}
	}
	for a, ns := range l.byAddr {
		for _, n := range ns {
			if _, ok := l.endpoints[n]; !ok || !slices.Contains(n.addrs, a) {
				errs = append(errs, fmt.Errorf("address %q leads to an endpoint with %q, in the ledger: %t", a, n.addrs, ok))
			}
		}
	}
	for r := range l.sets {
		errs = append(errs, r.check(), r.checkQueue(), r.checkFree(), r.checkStartup(), r.checkCounts())
	}
	return errors.Join(append(errs, l.checkClock(), l.checkCosts(), l.checkPlans())...)
}

// check asserts that n is needed, found and told as its members list it.
func (n *endpoint) check() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("endpoint %q: "+format, append([]any{n.addrs}, args...)...))
	}
	if n.load.inFlight == 0 && len(n.members) == 0 {
		fail("it is in the ledger without members and leases")
	}
	if len(n.members) == 0 && !slices.ContainsFunc(n.left, func(d departure) bool { return !d.over(n) }) {
		fail("its leases are nobody's: no endpoint set has left it since the oldest began")
	}
	if n.id != "" && n.ledger.byID[n.id] != n {
		fail("it is not found by its id %q", n.id)
	}
	for i, a := range n.addrs {
		if !slices.Contains(n.ledger.byAddr[a], n) {
			fail("it is not found by %q", a)
		}
		listed := 0
		for _, m := range n.members {
			if slices.Contains(m.addrs, a) {
				listed++
			}
		}
		switch {
		case listed == 0 && len(n.members) > 0:
			fail("it keeps %q, which no member lists", a)
		case len(n.listed) != len(n.addrs) || listed != n.listed[i]:
			fail("%d members list %q, its counts are %v", listed, a, n.listed)
		}
	}
	if !slices.IsSorted(n.addrs) {
		fail("its addresses are out of order")
	}
	if n.summary.known && n.summary != n.newSummary() {
		fail("it stands as %+v, not as %+v", n.newSummary(), n.summary)
	}
	if n.summary.known && !slices.Equal(n.parts, n.newParts()) {
		fail("its parts are %+v, not %+v", n.newParts(), n.parts)
	}
	return errors.Join(append(errs, n.checkMembers())...)
}

// checkMembers asserts that n and its members know each other.
func (n *endpoint) checkMembers() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("endpoint %q: "+format, append([]any{n.addrs}, args...)...))
	}
	placed, granted := 0, int64(0)
	for i, m := range n.members {
		for w := range m.set.queue.granted {
			if w.member == m {
				granted++
			}
		}
		if m.endpoint != n || len(n.sets) != len(n.members) || n.sets[i] != m.set {
			fail("it has a member of another endpoint or endpoint set")
		}
		if slices.ContainsFunc(m.addrs, func(a string) bool { return !slices.Contains(n.addrs, a) }) {
			fail("it lacks some of %q, which a member lists", m.addrs)
		}
		if o, _ := m.place(); o != nil {
			placed++
		}
		if _, ok := m.set.members[m]; !ok {
			fail("it has a member that endpoint set %q does not have", m.set.name)
		}
		if slices.ContainsFunc(n.members[:i], func(o *Member) bool { return o.set == m.set }) {
			fail("it has two members of endpoint set %q", m.set.name)
		}
	}
	if granted != n.granted {
		fail("%d of its leases are granted, %d are counted", granted, n.granted)
	}
	if placed != len(n.places) {
		fail("%d places for %d members in orders", len(n.places), placed)
	}
	return errors.Join(errs...)
}

// before reports whether p may stand before q.
func (p penalty) before(q penalty) bool {
	return p.until < q.until || p.until == q.until && p.connection != q.connection
}

// checkLoad asserts that each term is what it counts. That the orders have their sum
// is checked with the orders.
func (n *endpoint) checkLoad() error {
	var failed, units int64
	for i, p := range n.penalties {
		failed += p.failed
		units += p.units
		if p.failed <= 0 || p.units < p.failed || i > 0 && !n.penalties[i-1].before(p) {
			return fmt.Errorf("endpoint %q: penalty %d of %d units is out of order", n.addrs, i, p.units)
		}
	}
	if failed != n.load.failed || units != n.load.penalty || n.load.inFlight < 0 {
		return fmt.Errorf("endpoint %q: its load is %+v with %d units of penalty", n.addrs, n.load, units)
	}
	if n.load.inFlight > int64(n.highest) || n.failures+uint64(n.load.inFlight) > n.picks {
		return fmt.Errorf("endpoint %q: %d in flight of at most %d, %d failures of %d picks", n.addrs, n.load.inFlight, n.highest, n.failures, n.picks)
	}
	return nil
}

// checkLeases asserts that the endpoint's list has one lease for each RPC that is
// counted, and that the oldest comes first.
func (n *endpoint) checkLeases() error {
	live, units := int64(0), int64(0)
	on := map[*Connection]int64{}
	for _, m := range n.members {
		on[m.connection] = 0
		if m.connection.member != m {
			return fmt.Errorf("endpoint %q: its connection is another's", n.addrs)
		}
	}
	last := (*leaseEntry)(nil)
	for s := n.leases.oldest; s != nil; last, s = s, s.next {
		live++
		units += s.units()
		if s.connection != nil {
			on[s.connection]++
		}
		switch {
		case s.endpoint != n:
			return fmt.Errorf("endpoint %q: lease %d is another's", n.addrs, live)
		case s.prev != last || last != nil && last.start > s.start || live > n.load.inFlight:
			return fmt.Errorf("endpoint %q: lease %d of %d is out of order", n.addrs, live, n.load.inFlight)
		}
	}
	if n.leases.newest != last || live != n.load.inFlight {
		return fmt.Errorf("endpoint %q: %d leases with %d in flight", n.addrs, live, n.load.inFlight)
	}
	if units != n.load.units {
		return fmt.Errorf("endpoint %q: its leases cost %d units, %d are counted", n.addrs, units, n.load.units)
	}
	for c, live := range on {
		if err := c.check(live); err != nil {
			return fmt.Errorf("endpoint %q: %w", n.addrs, err)
		}
	}
	return nil
}

// checkFree asserts that free lease entries reach nothing but what is the endpoint
// set's.
func (r *EndpointSet) checkFree() error {
	for i, s := range r.counters.free {
		if s.endpoint != nil || s.connection != nil || s.prev != nil || s.next != nil || s.counters != r.counters {
			return fmt.Errorf("endpoint set %q: free lease entry %d holds an endpoint or a lease, or is another's", r.name, i)
		}
	}
	if n := len(r.counters.free); n > maxFree {
		return fmt.Errorf("endpoint set %q: %d free lease entries", r.name, n)
	}
	return nil
}

// checkClock asserts that the ledger knows what its clock has to do.
func (l *Ledger) checkClock() error {
	for n := range l.endpoints {
		if _, ok := l.penalized[n]; ok != (n.load.penalty > 0) {
			return fmt.Errorf("endpoint %q with penalty %d is penalized: %t", n.addrs, n.load.penalty, ok)
		}
	}
	for n := range l.penalized {
		if _, ok := l.endpoints[n]; !ok {
			return fmt.Errorf("endpoint %q is gone and penalized", n.addrs)
		}
	}
	ramps := 0
	for r := range l.sets {
		if err := r.checkRamps(); err != nil {
			return err
		}
		if _, ok := l.ramping[r]; ok != (len(r.ramps) > 0) {
			return fmt.Errorf("endpoint set %q with %d ramps is known to have some: %t", r.name, len(r.ramps), ok)
		}
		ramps += len(r.ramps)
	}
	for r := range l.ramping {
		if _, ok := l.sets[r]; !ok {
			return fmt.Errorf("endpoint set %q is gone and ramps", r.name)
		}
	}
	switch {
	case ramps != l.ramps:
		return fmt.Errorf("%d members ramp, %d are known to", ramps, l.ramps)
	case !l.clock.ticking && len(l.penalized)+l.ramps+len(l.starting)+l.timeouts.Len()+len(l.planning)+l.cooling.Len() > 0:
		return errors.New("the clock rests with penalties, ramps, start-ups, timeouts, costs or plans")
	}
	for i, w := range l.timeouts.waiters {
		if w.timeout != i || i > 0 && l.timeouts.Less(i, (i-1)/2) || w.set.ledger != l || w.set.queue.waiters[w.rpc] != w {
			return fmt.Errorf("timeout %d is out of order", i)
		}
	}
	return nil
}
