package state

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Drain keeps new RPCs from endpoints, whatever weights their members have. It is what one
// call of [Ledger.Drain] began. An endpoint takes none until all of its drains have ended,
// each by End. A drain ends, too, when no endpoint set lists the endpoint any more. It may be
// kept for long: one that has ended reaches the mutex, not the ledger.
type Drain struct {
	mu     *sync.Mutex // the ledger's
	drains []*drain
}

// drain is that of one endpoint, in its list.
type drain struct{ endpoint *endpoint } // nil once it has ended

// Drain drains the endpoint that has name as its explicit id, else all that have it as an
// address. It returns nil where no endpoint set lists one.
//
// No RPC is given to one of their members once it returns; leases live on, RPCs that wait
// for one choose anew, and sessions move away. It goes from member to member step by step.
func (l *Ledger) Drain(name string) *Drain {
	l.mu.Lock()
	defer l.mu.Unlock()
	on := l.listedAs(name)
	if len(on) == 0 {
		return nil
	}
	d := &Drain{mu: l.mu}
	for _, n := range on {
		begun := &drain{n}
		n.drains = append(n.drains, begun)
		d.drains = append(d.drains, begun)
	}
	l.updateDrained(on)
	return d
}

// End ends what Drain has begun. Ending twice changes nothing. Members are given RPCs again
// by the weight that they have then; a slow start goes on where it would be.
func (d *Drain) End() {
	d.mu.Lock()
	defer d.mu.Unlock()
	var on []*endpoint
	for _, ends := range d.drains {
		if n := ends.endpoint; n != nil {
			ends.endpoint = nil
			n.drains = slices.DeleteFunc(n.drains, func(o *drain) bool { return o == ends })
			on = append(on, n)
		}
	}
	d.drains = nil
	if len(on) > 0 {
		on[0].ledger.updateDrained(on)
	}
}

// listedAs returns the endpoints that Drain means.
func (l *Ledger) listedAs(name string) []*endpoint {
	ns := slices.Clone(l.byAddr[name])
	if n := l.byID[name]; n != nil && len(n.members) > 0 {
		ns = []*endpoint{n}
	}
	return slices.DeleteFunc(ns, func(n *endpoint) bool { return len(n.members) == 0 })
}

// updateDrained brings the members of some endpoints in line with their drains, step by
// step, and tells the endpoint sets. Others may begin and end some meanwhile. All members
// of an endpoint leave or enter the orders first: what one of them gives back is not
// given to another one that is drained, too.
func (l *Ledger) updateDrained(on []*endpoint) {
	steps := l.inSteps()
	changed := map[*EndpointSet]struct{}{}
	l.drainsInSteps++
	for _, n := range on {
		var ms []*Member
		for _, m := range n.members {
			if m.drained != n.isDrained() {
				m.setDrained(n.isDrained())
				m.takeUpDrained()
				ms = append(ms, m)
			}
		}
		for _, m := range ms {
			changed[m.set] = struct{}{}
			if m.endpoint == n {
				m.updateWaits()
				steps.did(unitChange)
			}
		}
	}
	l.drainsInSteps--
	for r := range changed {
		if f := r.drainsChanged; f != nil {
			go f()
		}
	}
}

// isDrained reports whether n is to take no RPCs.
func (n *endpoint) isDrained() bool { return len(n.drains) > 0 }

// endDrains ends all: nobody lists n any more.
func (n *endpoint) endDrains() {
	for _, d := range n.drains {
		d.endpoint = nil
	}
	n.drains = nil
}

// setDrained notes it of m.
func (m *Member) setDrained(drained bool) {
	if m.drained == drained {
		return
	}
	was := m.draining()
	m.drained = drained
	if m.draining() != was {
		m.since = m.set.ledger.clock.read()
	}
	if !drained {
		delete(m.set.drained, m)
		return
	}
	if m.set.drained == nil {
		m.set.drained = map[*Member]struct{}{}
	}
	m.set.drained[m] = struct{}{}
}

// takeUpDrained brings the orders in line with what setDrained has noted.
func (m *Member) takeUpDrained() {
	if !m.drained {
		m.newcomer, m.slowStart.nextStep = true, never // as with another weight
	} else if m.readySet == nil {
		m.stopConnecting()
	}
	m.updateOrders()
}

// draining reports whether m is ready and takes no RPCs.
func (m *Member) draining() bool { return m.readySet != nil && m.eligible() == nil }

// Drained returns the members whose endpoints are drained, nil where none is.
func (r *EndpointSet) Drained() map[*Member]struct{} {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	if len(r.drained) == 0 {
		return nil
	}
	return maps.Clone(r.drained)
}

// OnDrains has f called, in a goroutine of its own, after members were drained or are not
// any more.
func (r *EndpointSet) OnDrains(f func()) {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	if !r.closed {
		r.drainsChanged = f
	}
}

// Named reports whether an endpoint set of the ledger has one of the names.
func (l *Ledger) Named(names ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.sets {
		if slices.Contains(names, r.name) {
			return true
		}
	}
	return false
}

// checkDrains asserts that drains are of endpoints that somebody lists, and that their
// members know of them, unless that is being brought about.
func (n *endpoint) checkDrains() error {
	if n.isDrained() && len(n.members) == 0 {
		return fmt.Errorf("endpoint %q: it is drained, and nobody lists it", n.addrs)
	}
	for _, d := range n.drains {
		if d.endpoint != n {
			return fmt.Errorf("endpoint %q: it has a drain that has ended", n.addrs)
		}
	}
	for _, m := range n.members {
		if _, listed := m.set.drained[m]; listed != m.drained || m.drained != n.isDrained() && n.ledger.drainsInSteps == 0 {
			return fmt.Errorf("endpoint %q has %d drains, its member is drained: %t, listed as such: %t", n.addrs, len(n.drains), m.drained, listed)
		}
	}
	return nil
}
