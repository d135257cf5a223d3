package state

import "slices"

// heir returns an open endpoint set of the same name, nil without one: below xDS a channel has several, and
// closes that of a locality or a cluster which it does not use any more. One that serves is preferred.
func (r *EndpointSet) heir() (heir *EndpointSet) {
	for s := range r.ledger.sets {
		if s != r && s.name == r.name && !s.closed && (heir == nil || heir.inUse() == nil) {
			heir = s
		}
	}
	return heir
}

// bequeath gives another plan the RPCs that p has. They go once no endpoint set of the name lists
// their endpoint.
func (p *plan) bequeath(to *plan) {
	for c, g := range p.groups {
		if g.bound > 0 {
			g.plan, g.set, g.until, g.inherited = to, to.set, 0, true
			g.forgetDraw()
			p.bound -= g.bound
			to.bound += g.bound
			to.groups[c] = g
		}
	}
	to.endIfUnused()
}

// listedAs reports whether an endpoint set of the name lists n.
func (n *endpoint) listedAs(name string) bool {
	return slices.ContainsFunc(n.sets, func(r *EndpointSet) bool { return r.name == name })
}
