package state

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// costPeriod is how often, at most, the units of a lease change: streams count their
// tokens one by one, and each change moves their endpoint in the orders.
const costPeriod = 100 * time.Millisecond

// leaseCost is what a lease has of its RPC's cost.
type leaseCost struct {
	cost    *Cost
	cooling atomic.Bool // the units have changed lately, and the ledger's clock takes up what they are next

	mu      *sync.Mutex // the ledger's; it guards the rest
	lease   *leaseEntry // nil once it has ended
	units   int64       // that it counts
	due     time.Duration
	element *list.Element // in the ledger's cooling
	rare    rareLease     // the lease's, unless it had one before
}

// units returns what the lease counts.
func (s *leaseEntry) units() int64 {
	if s.rare == nil || s.rare.cost == nil {
		return 1
	}
	return s.rare.cost.units
}

// cost returns what the lease's RPC costs, nil where that is one unit.
func (s *leaseEntry) cost() *Cost {
	if s.rare == nil || s.rare.cost == nil {
		return nil
	}
	return s.rare.cost.cost
}

// setUnits changes what the lease, which has a cost, counts.
func (s *leaseEntry) setUnits(units int64) {
	lc, n := s.rare.cost, s.endpoint
	by := units - lc.units
	if by == 0 {
		return
	}
	n.ledger.extraUnits += by
	n.ledger.costs.remove(lc.units)
	n.ledger.costs.add(units)
	lc.units = units
	if k := s.rare.mark; k != nil {
		k.setUnits(units, by)
	}
	n.count(0, by)
}

// update takes up what the cost was set to, or has the clock do so when the units may
// change again. It takes the ledger's mutex.
func (lc *leaseCost) update() {
	if lc.cooling.Load() {
		return
	}
	lc.mu.Lock()
	defer lc.mu.Unlock()
	if lc.lease != nil && !lc.cooling.Load() {
		lc.takeUp()
	}
}

func (lc *leaseCost) takeUp() {
	units := lc.cost.units.Load()
	if units == lc.units {
		return
	}
	l := lc.lease.endpoint.ledger
	lc.lease.setUnits(units)
	lc.due = l.clock.read() + costPeriod
	lc.cooling.Store(true)
	lc.element = l.cooling.PushBack(lc)
	l.startClock()
}

// takeUpCosts takes up what costs were set to since their leases changed last, step by
// step.
func (l *Ledger) takeUpCosts() {
	steps := l.inSteps()
	for e := l.cooling.Front(); e != nil && e.Value.(*leaseCost).due <= l.clock.now; e = l.cooling.Front() {
		lc := e.Value.(*leaseCost)
		l.cool(lc)
		lc.takeUp()
		steps.did(unitChange * (1 + len(lc.lease.endpoint.places)))
	}
}

// cool has the units change at once again. Whoever sets them from now on does that; what
// was set before is the caller's to take up.
func (l *Ledger) cool(lc *leaseCost) {
	if lc.element != nil {
		l.cooling.Remove(lc.element)
		lc.element = nil
		lc.cooling.Store(false)
	}
}

// end is for the end of the lease, or of its part in the cost.
func (lc *leaseCost) end() {
	l := lc.lease.endpoint.ledger
	l.cool(lc)
	l.extraUnits -= lc.units - 1
	l.costs.remove(lc.units)
	lc.lease = nil
	lc.cost.ended(lc)
}

// unitsOfRPC returns how many units an RPC of the ledger costs on average.
func (l *Ledger) unitsOfRPC() float64 {
	if l.extraUnits == 0 {
		return 1
	}
	return 1 + float64(l.extraUnits)/float64(l.leases)
}
