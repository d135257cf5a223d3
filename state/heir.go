package state

import "slices"

// heir returns an open endpoint set of the same name, nil without one: below xDS a channel has several. It
// closes that of a locality or a cluster which it does not use any more, and that of a priority may have
// an empty list. One that serves is preferred.
func (r *EndpointSet) heir() (heir *EndpointSet) {
	for s := range r.ledger.sets {
		if s != r && s.name == r.name && !s.closed && (heir == nil || s.serves()) {
			heir = s
		}
	}
	return heir
}

// emptyFor returns the heir that serves in r's place while r's list is empty, nil without one.
func (r *EndpointSet) emptyFor() *EndpointSet {
	if len(r.members) > 0 {
		return nil
	}
	if heir := r.heir(); heir.serves() {
		return heir
	}
	return nil
}

// serves reports whether r has a level in use. r may be nil.
func (r *EndpointSet) serves() bool { return r != nil && r.inUse() != nil }

// bequeath gives an heir, if there is one, the RPCs that p has. They go once no endpoint set of the
// name lists their endpoint.
func (p *plan) bequeath(heir *EndpointSet) {
	if heir == nil || p.bound == 0 {
		return
	}
	to := heir.planNow()
	for c, g := range p.groups {
		if g.bound > 0 {
			g.plan, g.set, g.until, g.inherited = to, heir, 0, true
			g.forgetDraw()
			p.bound -= g.bound
			to.bound += g.bound
			to.groups[c] = g
			delete(p.groups, c)
		}
	}
	to.endIfUnused()
}

// listedAs reports whether an endpoint set of the name lists n.
func (n *endpoint) listedAs(name string) bool {
	return slices.ContainsFunc(n.sets, func(r *EndpointSet) bool { return r.name == name })
}
