package state

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// Check returns what is wrong in the ledger, nil when all invariants hold. It
// costs O(n) in all that the ledger holds, under its mutex: it is for tests.
func (l *Ledger) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	var sum int64
	for n := range l.endpoints {
		sum += n.inFlight
		errs = append(errs, n.check())
	}
	if sum != l.leases || sum < 0 {
		errs = append(errs, fmt.Errorf("counts add up to %d with %d live leases", sum, l.leases))
	}
	for id, n := range l.byID {
		if _, ok := l.endpoints[n]; !ok || n.id != id {
			errs = append(errs, fmt.Errorf("id %q leads to a endpoint with id %q, in the ledger: %t", id, n.id, ok))
		}
	}
	for a, ns := range l.byAddr {
		for _, n := range ns {
			if _, ok := l.endpoints[n]; !ok || !slices.Contains(n.addrs, a) {
				errs = append(errs, fmt.Errorf("address %q leads to a endpoint with %q, in the ledger: %t", a, n.addrs, ok))
			}
		}
	}
	for r := range l.sets {
		errs = append(errs, r.check())
	}
	errs = append(errs, l.checkSlots(), l.checkGuards())
	for _, s := range l.free {
		if s.endpoint != nil {
			errs = append(errs, errors.New("a free slot holds a endpoint"))
		}
	}
	return errors.Join(errs...)
}

func (n *endpoint) check() error {
	var errs []error
	if n.inFlight < 0 {
		errs = append(errs, fmt.Errorf("endpoint %q: count %d", n.addrs, n.inFlight))
	}
	if n.inFlight == 0 && len(n.members) == 0 {
		errs = append(errs, fmt.Errorf("endpoint %q is in the ledger without members and leases", n.addrs))
	}
	errs = append(errs, n.checkLoad())
	if n.id != "" && n.ledger.byID[n.id] != n {
		errs = append(errs, fmt.Errorf("endpoint %q is not found by its id %q", n.addrs, n.id))
	}
	for _, a := range n.addrs {
		if !slices.Contains(n.ledger.byAddr[a], n) {
			errs = append(errs, fmt.Errorf("endpoint %q is not found by %q", n.addrs, a))
		}
		listed := slices.ContainsFunc(n.members, func(m *Member) bool { return slices.Contains(m.addrs, a) })
		if !listed && len(n.members) > 0 {
			errs = append(errs, fmt.Errorf("endpoint %q keeps %q, which no member lists", n.addrs, a))
		}
	}
	placed := 0
	for i, m := range n.members {
		if m.endpoint != n {
			errs = append(errs, fmt.Errorf("endpoint %q has a member of another endpoint", n.addrs))
		}
		if m.handle != order.None {
			placed++
		}
		if _, ok := m.set.members[m]; !ok {
			errs = append(errs, fmt.Errorf("endpoint %q has a member that endpoint set %q does not have", n.addrs, m.set.name))
		}
		for _, o := range n.members[:i] {
			if o.set == m.set {
				errs = append(errs, fmt.Errorf("endpoint %q has two members of endpoint set %q", n.addrs, m.set.name))
			}
		}
	}
	if placed != len(n.places) {
		errs = append(errs, fmt.Errorf("endpoint %q has %d places for %d members in orders", n.addrs, len(n.places), placed))
	}
	return errors.Join(errs...)
}

func (r *EndpointSet) check() error {
	var errs []error
	eligible := 0
	for m := range r.members {
		if m.endpoint == nil || !slices.Contains(m.endpoint.members, m) {
			errs = append(errs, fmt.Errorf("endpoint set %q: member %q is not its endpoint's", r.name, m.addrs))
			continue
		}
		if m.leaves {
			errs = append(errs, fmt.Errorf("endpoint set %q: member %q still leaves", r.name, m.addrs))
		}
		errs = append(errs, m.check())
		if m.handle == order.None {
			continue
		}
		eligible++
		if m.readySet == nil || !slices.Contains(r.readySets, m.readySet) {
			errs = append(errs, fmt.Errorf("endpoint set %q: member %q has a handle and no ready set", r.name, m.addrs))
			continue
		}
		p := place{&m.readySet.order, m.handle}
		c := p.order.Value(p.handle)
		if c.member != m || c.endpoint != m.endpoint || !slices.Contains(m.endpoint.places, p) {
			errs = append(errs, fmt.Errorf("endpoint set %q: member %q is not at handle %d", r.name, m.addrs, m.handle))
		}
	}
	placed := 0
	for _, v := range r.readySets {
		placed += v.order.Len()
		errs = append(errs, v.order.Check(choice.standing), v.check())
	}
	errs = append(errs, r.checkQueue())
	if placed != eligible {
		errs = append(errs, fmt.Errorf("endpoint set %q: %d members in orders, %d eligible", r.name, placed, eligible))
	}
	return errors.Join(errs...)
}

// standing returns by what c is to stand in its order.
func (c choice) standing() (weight float64, load int64) {
	return c.member.effectiveWeight(), c.endpoint.load
}
