package state

import (
	"math"
	"slices"
)

// EndpointState is the best that an endpoint set says of an endpoint.
type EndpointState string

// The states of an endpoint.
const (
	EndpointReady    EndpointState = "ready"     // it may be chosen, its cap apart
	EndpointDraining EndpointState = "draining"  // it is ready with weight 0: RPCs live on, new ones go elsewhere
	EndpointNotReady EndpointState = "not_ready" // it is listed and has no connection
	EndpointDeparted EndpointState = "departed"  // no endpoint set lists it, RPCs are in flight
)

// EndpointStates are all states.
var EndpointStates = []EndpointState{EndpointReady, EndpointDraining, EndpointNotReady, EndpointDeparted}

// state returns the endpoint's state.
func (n EndpointSnapshot) state() EndpointState {
	switch is := func(f func(MemberSnapshot) bool) bool { return slices.ContainsFunc(n.Members, f) }; {
	case len(n.Members) == 0:
		return EndpointDeparted
	case is(func(m MemberSnapshot) bool { return m.Ready && !m.Draining }):
		return EndpointReady
	case is(func(m MemberSnapshot) bool { return m.Ready }):
		return EndpointDraining
	}
	return EndpointNotReady
}

// Address returns the first of the endpoint's addresses, which names it where there
// is room for one.
func (n EndpointSnapshot) Address() string {
	if len(n.Addresses) == 0 {
		return ""
	}
	return n.Addresses[0]
}

// Eligible returns the endpoint's first member of the highest priority by which it
// may be chosen, and whether there is one.
func (n EndpointSnapshot) Eligible() (MemberSnapshot, bool) {
	best := MemberSnapshot{Priority: math.MaxUint32}
	found := false
	for _, m := range n.Members {
		if m.Ready && !m.Draining && (!found || m.Priority < best.Priority) {
			best, found = m, true
		}
	}
	return best, found
}

// imbalance returns the most minus the fewest in flight on the endpoints of the
// highest priority level that has ready ones, each over its weight relative to
// the mean of theirs. With equal weights that is a difference of counts.
func imbalance(endpoints []EndpointSnapshot) float64 {
	level := uint32(math.MaxUint32)
	var counts, weights []float64
	sum := 0.0
	for _, n := range endpoints {
		m, ok := n.Eligible()
		if !ok || m.Priority > level {
			continue
		}
		if m.Priority < level {
			level, counts, weights, sum = m.Priority, nil, nil, 0
		}
		counts, weights = append(counts, float64(n.InFlight)), append(weights, float64(m.Weight))
		sum += float64(m.Weight)
	}
	if len(counts) == 0 {
		return 0
	}
	mean := sum / float64(len(weights))
	for i, w := range weights {
		counts[i] *= mean / w
	}
	return slices.Max(counts) - slices.Min(counts)
}
