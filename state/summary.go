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
	EndpointDraining EndpointState = "draining"  // it is ready with weight 0, or drained: RPCs live on, new ones go elsewhere
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

// stateSeconds returns how long the endpoint is in its state, as its members tell; its
// own, once it has none.
func (n EndpointSnapshot) stateSeconds() float64 {
	longest, shortest := 0.0, math.Inf(1)
	for _, m := range n.Members {
		if is := (EndpointSnapshot{Members: []MemberSnapshot{m}}).state(); is == n.State {
			longest, shortest = max(longest, m.SinceSeconds), min(shortest, m.SinceSeconds)
		}
	}
	switch n.State {
	case EndpointDeparted:
		return n.StateSeconds
	case EndpointNotReady: // since the last one
		return shortest
	}
	return longest
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

// heldBack reports whether a guard keeps RPCs from the endpoint in the level: an endpoint set
// gives it none there while it is full, or fewer while it starts slowly. It says nothing of
// how level the others are.
func (n EndpointSnapshot) heldBack(priority uint32) bool {
	return slices.ContainsFunc(n.Members, func(m MemberSnapshot) bool {
		return m.Ready && !m.Draining && m.Priority == priority && (m.Full || m.SlowStartFactor < 1)
	})
}

// levelLoad is what an endpoint that may be chosen has in flight, with the priority
// level and the weight that it is chosen by.
type levelLoad struct {
	priority, weight uint32
	inFlight         int64
	units, penalty   int64
	heldBack         bool
	report           ReportSnapshot
	others           int64 // RPCs of others that count, too
}

// firstLevel returns the highest priority level that has endpoints.
func firstLevel(loads []levelLoad) uint32 {
	level := uint32(math.MaxUint32)
	for _, n := range loads {
		level = min(level, n.priority)
	}
	return level
}

// costOfRPC returns what an RPC in flight costs on average, in units.
func costOfRPC(loads []levelLoad) float64 {
	inFlight, units := int64(0), int64(0)
	for _, n := range loads {
		inFlight += n.inFlight
		units += n.units
	}
	if inFlight == 0 {
		return 1
	}
	return float64(units) / float64(inFlight)
}

// imbalance returns by how many RPCs endpoints differ, of the highest priority level that has
// ready ones: the most minus the fewest in flight, each over its weight relative to the mean
// of theirs. With equal weights that is a difference of counts. RPCs with costs count those,
// and the difference is in RPCs of their mean cost, which those of others have, too. Endpoints that are held back are left out: others
// have more because these have less, or nothing is to be done about what they have.
//
// A penalty fills its endpoint up, since RPCs are kept from it so, and does not make it the
// one with the most.
func imbalance(loads []levelLoad) float64 {
	cost := costOfRPC(loads)
	level := firstLevel(loads)
	count, sum, most, fewest := 0, 0.0, 0.0, math.Inf(1)
	for _, n := range loads {
		if n.priority != level || n.heldBack {
			continue
		}
		count++
		w := float64(n.weight)
		sum += w
		units := float64(n.units) + cost*float64(n.others)
		most = max(most, units/w)
		fewest = min(fewest, (units+float64(n.penalty))/w)
	}
	return max(0, most-fewest) / cost * sum / float64(max(1, count))
}
