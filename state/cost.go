package state

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// MaxCost is the most units that an RPC may cost.
const MaxCost = 1_000_000

// Cost is how many units an RPC counts in the scores of its endpoints, instead of one. A
// context has it, and it is of the first RPC that picks with that, with all its attempts;
// and of the other RPCs of its session, which carry the same stream. It reaches a ledger
// only while one of these has a lease there.
type Cost struct {
	units atomic.Int64 // as it was set last
	live  atomic.Int32 // leases
	first leaseCost    // of the first lease, the only one of most: so a pick need not allocate

	mu    sync.Mutex // guards what follows. A ledger's mutex comes before it
	owned bool
	owner rpcName      // the RPC whose it is, once it is owned
	begun bool         // first is in use, or was: who sets the cost may still look at it
	more  []*leaseCost // of the live leases after the first
}

// rpcName is what an RPC is known by among others that have its context.
type rpcName struct {
	done  <-chan struct{} // of all of gRPC's attempts
	mark  *Mark           // nil unless it is a session's
	tried *Tried          // that stands for all that its program makes of it; or nil
}

// isNext reports whether an RPC of another name is the next one of the same stream, or the
// next attempt of the same program, which has no other one then.
func (was rpcName) isNext(is rpcName, live bool) bool {
	if is.mark != nil && was.mark != nil {
		return is.mark != was.mark && is.mark.session == was.mark.session
	}
	return is.tried != nil && is.tried == was.tried && !live
}

type costKey struct{}

// costed is set once a program uses costs; before, contexts are not searched for one.
var costed atomic.Bool

// WithCost returns a context whose first RPC costs some units, from 1 to MaxCost.
func WithCost(ctx context.Context, units int64) context.Context {
	costed.Store(true)
	c := &Cost{}
	c.units.Store(units)
	return context.WithValue(ctx, costKey{}, c)
}

// CostOf returns the cost that ctx has, nil without one. ctx may be nil.
func CostOf(ctx context.Context) *Cost {
	if ctx == nil || !costed.Load() {
		return nil
	}
	c, _ := ctx.Value(costKey{}).(*Cost)
	return c
}

// Set changes the cost to some units, from 1 to MaxCost: that of leases to come at once,
// that of live ones within costPeriod. It takes no ledger's mutex where they have changed
// that lately.
func (c *Cost) Set(units int64) {
	c.units.Store(units) // before leases are looked at: attach reads it when it has added one
	var few [2]*leaseCost
	leases := few[:0]
	c.mu.Lock()
	if c.begun {
		leases = append(leases, &c.first)
	}
	leases = append(leases, c.more...)
	c.mu.Unlock()
	for _, lc := range leases {
		lc.update()
	}
}

// ofRPC returns c for an RPC whose it is, or is from now on, and nil for another one. Mark
// and tried may be nil, and so may c.
func (c *Cost) ofRPC(done <-chan struct{}, mark *Mark, tried *Tried) *Cost {
	if c == nil {
		return nil
	}
	is := rpcName{done: done, mark: mark}
	if tried != nil && tried.isRPC {
		is.tried = tried
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owned && c.owner.done != done && !c.owner.isNext(is, c.live.Load() > 0) {
		return nil
	}
	c.owner, c.owned = is, true
	return c
}

// attach has the lease, which is new, cost what c says, now and as it changes. It returns
// the units, which are to be counted.
func (c *Cost) attach(s *leaseEntry) (units int64) {
	lc := c.newLease(s.counters.mu)
	if s.rare == nil {
		s.rare = &lc.rare
	}
	s.rare.cost, lc.lease = lc, s
	lc.units = c.units.Load()
	l := s.endpoint.ledger
	l.extraUnits += lc.units - 1
	if l.costs == nil {
		l.costs = &costSizes{}
	}
	l.costs.add(lc.units)
	return lc.units
}

// bind has the lease, which was kept for a session, cost what c says. c may be nil.
func (c *Cost) bind(s *leaseEntry) {
	if c == nil || s.cost() == c {
		return
	}
	was := s.units()
	if s.rare != nil && s.rare.cost != nil {
		s.rare.cost.end()
	}
	s.endpoint.count(0, c.attach(s)-was)
}

// newLease adds a lease to c, of a ledger with the mutex.
func (c *Cost) newLease(mu *sync.Mutex) *leaseCost {
	c.mu.Lock()
	defer c.mu.Unlock()
	lc := &c.first
	if c.begun {
		lc = &leaseCost{}
		c.more = append(c.more, lc)
	}
	c.begun = true
	c.live.Add(1)
	lc.cost, lc.mu = c, mu
	return lc
}

// ended forgets a lease.
func (c *Cost) ended(lc *leaseCost) {
	c.live.Add(-1)
	if lc == &c.first {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.more, lc)
	c.more = slices.Delete(c.more, i, i+1)
}
