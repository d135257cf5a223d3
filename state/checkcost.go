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
	extra, costly, cooling := int64(0), 0, 0
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
			costly++
			errs = append(errs, lc.check(s, l))
		}
	}
	if extra != l.extraUnits || costly != len(l.costly) || cooling != l.cooling.Len() {
		errs = append(errs, fmt.Errorf("%d units more than one each, %d leases with costs and %d that changed lately: %d, %d and %d are counted",
			extra, costly, cooling, l.extraUnits, len(l.costly), l.cooling.Len()))
	}
	for i := range l.costly {
		if i > 0 && l.costly.Less(i, (i-1)/2) {
			errs = append(errs, fmt.Errorf("costly RPC %d is before its parent", i))
		}
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
	known := slices.Contains(lc.cost.leases, lc)
	lc.cost.mu.Unlock()
	inHeap := lc.index < len(l.costly) && l.costly[lc.index] == lc
	if lc.lease != s || !known || lc.mu != l.mu || lc.units < 1 || lc.units > MaxCost ||
		lc.cooling.Load() != (lc.element != nil) || !inHeap {
		return fmt.Errorf("endpoint %q: a lease of %d units is known to its cost: %t, in the heap: %t, changed lately: %t", s.endpoint.addrs, lc.units, known, inHeap, lc.cooling.Load())
	}
	return nil
}
