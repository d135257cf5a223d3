package state

import (
	"fmt"
	"slices"
)

// checkStartup asserts that a start-up lasts exactly while there is something to it,
// that each reservation is a lease on a member that connects or that the RPC may take
// up, and that the heaps are in order.
func (r *EndpointSet) checkStartup() error {
	connecting, reserved := 0, 0
	for m := range r.members {
		c := m.connecting
		if c == nil {
			continue
		}
		reserved += len(c.reserved)
		if m.connects() {
			connecting++
		}
		if err := m.checkConnecting(); err != nil {
			return fmt.Errorf("endpoint set %q: member %q: %w", r.name, m.addrs, err)
		}
	}
	for _, v := range r.readySets {
		connecting -= len(v.connecting.members)
	}
	s := r.startup
	_, starting := r.ledger.starting[r]
	if connecting != 0 || starting != (s != nil) {
		return fmt.Errorf("endpoint set %q: %d connecting members too many, starting: %t, known: %t", r.name, connecting, s != nil, starting)
	}
	if s == nil {
		if reserved > 0 {
			return fmt.Errorf("endpoint set %q: %d reservations after the start-up", r.name, reserved)
		}
		return nil
	}
	inFlight := 0
	for n := range r.ledger.endpoints {
		for e := n.leases.oldest; e != nil; e = e.next {
			if e.rare != nil && e.rare.startup == s {
				inFlight++
			}
		}
	}
	if s.connecting+len(s.reservations) == 0 || reserved != len(s.reservations) || inFlight != s.inFlight {
		return fmt.Errorf("endpoint set %q: %d connect, %d of %d reservations, %d of %d in flight", r.name, s.connecting, reserved, len(s.reservations), inFlight, s.inFlight)
	}
	for rpc, res := range s.reservations {
		if m := res.member; m == nil || m.set != r || res.rpc != rpc || res.lease.entry.gen != res.lease.gen || res.lease.entry.endpoint != m.endpoint || !slices.Contains(reservations.of(rpc), res) {
			return fmt.Errorf("endpoint set %q: a reservation without its lease", r.name)
		}
	}
	return nil
}

// checkConnecting asserts that m connects or is reserved, and where it stands.
func (m *Member) checkConnecting() error {
	c := m.connecting
	h := &c.readySet.connecting
	connects := m.connects()
	switch {
	case !connects && len(c.reserved) == 0:
		return fmt.Errorf("it neither connects nor is reserved")
	case !connects && m.eligible() != c.readySet:
		return fmt.Errorf("%d reservations that nobody can take up", len(c.reserved))
	case !connects:
		return nil
	case m.readySet != nil || c.weight == 0 || m.drained || c.index >= len(h.members) || h.members[c.index] != m || c.score != m.connectingScore():
		return fmt.Errorf("it connects at %d with weight %d and score %v, ready: %t", c.index, c.weight, c.score, m.readySet != nil)
	case c.index > 0 && h.Less(c.index, (c.index-1)/2):
		return fmt.Errorf("it is before %q in the heap", h.members[(c.index-1)/2].addrs)
	}
	return nil
}
