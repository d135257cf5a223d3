package state

import (
	"errors"
	"fmt"
	"slices"
)

// checkCosts asserts that leases and costs know each other, that the ledger knows what
// they add up to, and that what a lease counts is what its cost was set to, or will be.
func (l *Ledger) checkCosts() error {
	var errs []error
	extra, cooling := int64(0), 0
	var sizes costSizes
	for n := range l.endpoints {
		for s, i := n.leases.oldest, int64(0); s != nil && i < n.load.inFlight; s, i = s.next, i+1 {
			if s.rare == nil || s.rare.cost == nil {
				continue
			}
			lc := s.rare.cost
			extra += lc.units - 1
			if lc.element != nil {
				cooling++
			}
			sizes.add(lc.units)
			errs = append(errs, lc.check(s, l))
		}
	}
	if extra != l.extraUnits || cooling != l.cooling.Len() {
		errs = append(errs, fmt.Errorf("leases cost %d units more than one each, and %d have changed lately: %d and %d are counted",
			extra, cooling, l.extraUnits, l.cooling.Len()))
	}
	if l.costs != nil && (sizes.leases != l.costs.leases || l.costs.top < sizes.top) {
		errs = append(errs, errors.New("leases are counted by other costs than they have"))
	}
	if most := int64(sizes.most[sizes.top]); l.largestCost() < most || costSize(l.largestCost()) > max(1, sizes.top) {
		errs = append(errs, fmt.Errorf("the largest cost is %d units, not %d", most, l.largestCost()))
	}
	last := never
	for e := l.cooling.Front(); e != nil; e = e.Next() {
		lc := e.Value.(*leaseCost)
		if lc.element != e || lc.due < last {
			errs = append(errs, errors.New("a cost is to change out of order"))
		}
		last = lc.due
	}
	return errors.Join(errs...)
}

func (lc *leaseCost) check(s *leaseEntry, l *Ledger) error {
	lc.cost.mu.Lock()
	known := lc.cost.begun && lc == &lc.cost.first || slices.Contains(lc.cost.more, lc)
	lc.cost.mu.Unlock()
	if lc.lease != s || !known || lc.mu != l.mu || lc.units < 1 || lc.units > MaxCost ||
		lc.cooling.Load() != (lc.element != nil) {
		return fmt.Errorf("endpoint %q: a lease of %d units is known to its cost: %t, changed lately: %t", s.endpoint.addrs, lc.units, known, lc.cooling.Load())
	}
	return nil
}
