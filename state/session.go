package state

import (
	"container/list"
	"context"
	"sync/atomic"
)

// Session is one long stream of the application, over the RPCs that carry it one after
// another. The zero value is ready for use. It reaches a ledger only while a move is
// under way.
type Session struct {
	move atomic.Pointer[move] // that is under way. Any ledger sets it where there is none, and its own one ends it
}

// Mark is what the contexts of one of a session's RPCs have. It is bound to the lease of
// the first pick, and anew once that has ended: that is the RPC's next attempt. Picks
// between are other RPCs'.
type Mark struct {
	session *Session
	moved   chan struct{}
	entry   atomic.Pointer[leaseEntry] // of the lease that it is bound to; nil without one

	// What follows belongs to the ledger of that lease.
	asked   bool          // moved is closed
	move    *move         // that it was asked for, while that is under way
	took    bool          // its lease is the place that was kept for it
	group   *group        // that it is in
	element *list.Element // there, while it may be asked; else nil
}

type markKey struct{}

// marked is set once a program uses sessions; before, contexts are not searched for a
// mark.
var marked atomic.Bool

// Next returns a context that marks the session's next RPC, and a channel that is
// closed when that should be opened anew.
func (s *Session) Next(ctx context.Context) (context.Context, <-chan struct{}) {
	marked.Store(true)
	k := &Mark{session: s, moved: make(chan struct{})}
	return context.WithValue(ctx, markKey{}, k), k.moved
}

// MarkOf returns the mark that ctx has, nil without one. ctx may be nil.
func MarkOf(ctx context.Context) *Mark {
	if ctx == nil || !marked.Load() {
		return nil
	}
	k, _ := ctx.Value(markKey{}).(*Mark)
	return k
}

// bind notes that an RPC of r that has the mark was given a lease. When it is the
// session's next one, it has arrived.
func (k *Mark) bind(s *leaseEntry, r *EndpointSet, took bool) {
	if !k.entry.CompareAndSwap(nil, s) {
		return // the RPC has one already: this is another that has its context
	}
	s.makeRare().mark, k.took = k, took
	p := r.planNow()
	p.bound++
	r.ledger.marks++
	k.group = p.groupOf(s)
	if k.group.bound++; !k.asked {
		k.element = k.group.insert(k, s.start)
		k.group.units += s.units()
	}
	if mv := k.session.move.Load(); mv != nil && mv.set.ledger == r.ledger && mv.asked != k && !mv.arrived {
		s.endpoint.movedHere++
		mv.from.movedAway++
		mv.arrive()
	}
}

// unbind is for the end of the lease that has the mark.
func (s *leaseEntry) unbind(how ending) {
	k := s.rare.mark
	p, n := k.group.plan, s.endpoint
	s.rare.mark = nil
	k.dontAsk()
	if k.took {
		n.noteMoved(s, how)
	}
	if mv := k.move; mv != nil {
		mv.leave()
	}
	k.group.bound--
	k.group, k.took = nil, false
	n.ledger.marks--
	k.entry.Store(nil) // last: it may be bound in another ledger
	p.bound--
	p.endIfUnused()
}

// units returns what the mark's RPC costs, 1 where it has none or k is nil.
func (k *Mark) units() int64 {
	if k != nil {
		if s := k.entry.Load(); s != nil {
			return s.units()
		}
	}
	return 1
}

// dontAsk takes k from those that may be asked.
func (k *Mark) dontAsk() {
	if k.element != nil {
		k.group.marks.Remove(k.element)
		k.group.units -= k.entry.Load().units()
		k.element = nil
	}
}

// setUnits takes up that the RPC costs some units now, by so many more.
func (k *Mark) setUnits(units, by int64) {
	if k.element != nil {
		k.group.units += by
	}
	if k.move != nil {
		k.move.setUnits(units)
	}
}
