package state

import (
	"container/list"
	"errors"
	"fmt"
)

// checkPlans asserts that marks, groups and moves agree with leases and planned loads.
func (l *Ledger) checkPlans() error {
	var errs []error
	asked, leaving, arriving, marks := map[*endpoint]int32{}, map[*endpoint]int64{}, map[*endpoint]int32{}, 0
	for r := range l.sets {
		_, planning := l.planning[r]
		switch p := r.plan; {
		case planning != (p != nil):
			errs = append(errs, fmt.Errorf("endpoint set %q has a plan: %t, and is known to: %t", r.name, p != nil, planning))
		case p != nil:
			errs = append(errs, p.check(asked, leaving, arriving))
		}
	}
	for n := range l.endpoints {
		for s, i := n.leases.oldest, int64(0); s != nil && i < n.load.inFlight; s, i = s.next, i+1 {
			if s.mark() != nil {
				marks++
				errs = append(errs, s.checkMark())
			}
		}
		if n.asked != asked[n] || n.arriving != arriving[n] || n.leaving != leaving[n] {
			errs = append(errs, fmt.Errorf("endpoint %q: %d of %d units were asked and %d arrive, %d, %d and %d are counted", n.addrs, asked[n], leaving[n], arriving[n], n.asked, n.leaving, n.arriving))
		}
	}
	if marks != l.marks {
		errs = append(errs, fmt.Errorf("%d leases have marks, %d are counted", marks, l.marks))
	}
	return errors.Join(errs...)
}

func (s *leaseEntry) checkMark() error {
	k := s.mark()
	if k.entry.Load() != s || k.group == nil || k.group.connection != s.connection || k.group.endpoint != s.endpoint || k.asked && k.element != nil {
		return fmt.Errorf("endpoint %q: a lease has a mark that is another's, or that is in the wrong group", s.endpoint.addrs)
	}
	return nil
}

// check asserts that the plan's moves are its sessions', and counts by endpoint those that
// were asked and have not left, with their units, and the places.
func (p *plan) check(asked map[*endpoint]int32, leaving map[*endpoint]int64, arriving map[*endpoint]int32) error {
	var errs []error
	fail := func(text string) { errs = append(errs, fmt.Errorf("endpoint set %q: %s", p.set.name, text)) }
	last := never
	for e := p.moves.Front(); e != nil; e = e.Next() {
		mv := e.Value.(*move)
		if mv.set != p.set || mv.element != e || mv.session.move.Load() != mv {
			fail("a move is another's")
		}
		if mv.due < last {
			fail("a move is out of order")
		}
		if s := mv.place.entry; s != nil && (s.endpoint == nil || s.gen != mv.place.gen || s.mark() != nil) {
			fail("a place is kept that is none")
		} else if s != nil {
			arriving[s.endpoint]++
		}
		if mv.left && mv.arrived {
			fail("a move is done and under way")
		}
		if !mv.left {
			asked[mv.from]++
			leaving[mv.from] += mv.units
			if s := mv.asked.entry.Load(); mv.asked.move != mv || s == nil || s.units() != mv.units {
				fail("an RPC was asked and does not know, or costs something else")
			}
		}
		last = mv.due
	}
	if p.bound+p.moves.Len() == 0 {
		fail("a plan is left without RPCs and moves")
	}
	bound := 0
	for c, g := range p.groups {
		bound += g.bound
		if g.bound < g.marks.Len() || g.set != p.set {
			fail("a group has other leases than are counted, or another endpoint set")
		}
		if units, ok := inOrder(g.marks); g.connection != c || g.plan != p || !ok || units != g.units {
			fail("a group is another's, or out of order, or costs something else")
		}
		if g.drawn < 0 || g.drawn > 0 && p.level.fleetAt == never {
			fail("RPCs are to leave by a report that there was none of")
		}
	}
	if bound > p.bound { // groups of those alone that were asked may be forgotten
		fail("groups have more leases than the plan")
	}
	for i, n := range p.level.all {
		if n.member.newcomerAt != i || n.member.eligibleIn == nil || n.left < 0 || n.left > 1 || n.due < 0 {
			fail("a newcomer has left, or is another, or has more than its part")
		}
	}
	if p.fleet != nil && !p.set.ledger.clock.inTick {
		fail("it looks at the fleet between two looks")
	}
	return errors.Join(errs...)
}

// inOrder reports whether the oldest of a group comes first. It returns what they cost.
func inOrder(marks *list.List) (units int64, ok bool) {
	last := never
	for e := marks.Front(); e != nil; e = e.Next() {
		k := e.Value.(*Mark)
		s := k.entry.Load()
		if s == nil || s.mark() != k || k.element != e || s.start < last {
			return 0, false
		}
		units += s.units()
		last = s.start
	}
	return units, true
}
