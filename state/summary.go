package state

import (
	"math"
	"slices"
)

// NodeState is the best that a roster says of a node.
type NodeState string

// The states of a node.
const (
	NodeReady    NodeState = "ready"     // it may be chosen, its cap apart
	NodeDraining NodeState = "draining"  // it is ready with weight 0: RPCs live on, new ones go elsewhere
	NodeNotReady NodeState = "not_ready" // it is listed and has no connection
	NodeDeparted NodeState = "departed"  // no roster lists it, RPCs are in flight
)

// NodeStates are all states.
var NodeStates = []NodeState{NodeReady, NodeDraining, NodeNotReady, NodeDeparted}

// state returns the node's state.
func (n NodeSnapshot) state() NodeState {
	switch is := func(f func(MemberSnapshot) bool) bool { return slices.ContainsFunc(n.Members, f) }; {
	case len(n.Members) == 0:
		return NodeDeparted
	case is(func(m MemberSnapshot) bool { return m.Ready && !m.Draining }):
		return NodeReady
	case is(func(m MemberSnapshot) bool { return m.Ready }):
		return NodeDraining
	}
	return NodeNotReady
}

// Address returns the first of the node's addresses, which names it where there
// is room for one.
func (n NodeSnapshot) Address() string {
	if len(n.Addresses) == 0 {
		return ""
	}
	return n.Addresses[0]
}

// Taking returns the node's first member of the highest priority by which it may
// be chosen, and whether there is one.
func (n NodeSnapshot) Taking() (MemberSnapshot, bool) {
	best := MemberSnapshot{Priority: math.MaxUint32}
	found := false
	for _, m := range n.Members {
		if m.Ready && !m.Draining && (!found || m.Priority < best.Priority) {
			best, found = m, true
		}
	}
	return best, found
}

// imbalance returns the most minus the fewest in flight on the nodes of the
// highest priority level that has ready ones, each over its weight relative to
// the mean of theirs. With equal weights that is a difference of counts.
func imbalance(nodes []NodeSnapshot) float64 {
	level := uint32(math.MaxUint32)
	var counts, weights []float64
	sum := 0.0
	for _, n := range nodes {
		m, ok := n.Taking()
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
