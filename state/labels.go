package state

import (
	"slices"
	"time"
	"unique"
)

// Labels are what metrics tell endpoint sets of a ledger apart by.
type Labels struct {
	Target   string // the endpoint set's name
	Locality string
	Cluster  string
}

// labels are Labels that are compared in no time.
type labels = unique.Handle[Labels]

// SetLabels sets the endpoint set's labels, besides its name.
func (r *EndpointSet) SetLabels(locality, cluster string) {
	is := unique.Make(Labels{r.name, locality, cluster})
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	if r.labels == is {
		return
	}
	r.labels = is
	steps := r.ledger.inSteps()
	for m := range r.members {
		m.endpoint.summary.known = false
		steps.did(unitLook)
	}
}

// departure is that the last endpoint set of a target has left an endpoint. The endpoint
// is the target's still while a lease that is as old as that is live: it may be its.
type departure struct {
	labels labels
	at     time.Duration
}

// of reports whether the departure is of the same target as the labels.
func (d departure) of(is labels) bool { return d.labels.Value().Target == is.Value().Target }

// over reports whether no lease of n is as old as the departure.
func (d departure) over(n *endpoint) bool {
	return n.leases.oldest == nil || n.leases.oldest.start > d.at
}

// depart notes that an endpoint set with the labels has left n.
func (n *endpoint) depart(is labels) {
	if n.load.inFlight == 0 {
		n.left = nil
		return
	}
	left := departure{is, n.ledger.clock.read()}
	n.left = slices.DeleteFunc(n.left, func(d departure) bool { return d.over(n) || d.of(is) })
	if !n.listedBy(left) {
		n.left = append(n.left, left)
	}
}

// listedBy reports whether an endpoint set of the departure's target lists n.
func (n *endpoint) listedBy(d departure) bool {
	return slices.ContainsFunc(n.sets, func(r *EndpointSet) bool { return r.labels == d.labels || d.of(r.labels) })
}

// addDeparted adds the targets that have left n to its part in the totals.
func (n *endpoint) addDeparted(e *endpointTotal) {
	for _, d := range n.left {
		if d.over(n) || n.listedBy(d) {
			continue
		}
		gone := summary{known: true, labels: d.labels, state: EndpointDeparted}
		switch {
		case len(n.members) == 0 && e.labels == labels{}:
			e.summary = gone
			continue
		case e.parts == nil:
			e.parts = []summary{e.summary}
		default:
			e.parts = slices.Clip(e.parts) // n's stay as they are
		}
		e.parts = append(e.parts, gone)
	}
}
