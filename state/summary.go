package state

import (
	"cmp"
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

// summary is what an endpoint's members say of it: its state and, where it may be
// chosen, the priority level and the weight of its first member of the highest level.
// It is made when it is asked for, and kept until a member changes, as by being full or
// having room again.
type summary struct {
	known            bool
	labels           labels // of all of them, or none where they differ
	state            EndpointState
	priority, weight uint32
	effectiveWeight  float64
	heldBack         bool  // in the level: a member is full or starts slowly
	maxInFlight      int64 // the lowest of their caps; 0 without one
}

// newSummary returns the summary of all members.
func (n *endpoint) newSummary() summary {
	s := n.summarize(labels{})
	if len(n.members) > 0 {
		s.labels = n.members[0].set.labels
	}
	for _, m := range n.members {
		if m.set.labels != s.labels {
			s.labels = labels{}
		}
	}
	return s
}

// newParts returns the summaries by labels, if there are several.
func (n *endpoint) newParts() (parts []summary) {
	for _, m := range n.members {
		is := m.set.labels
		if is != n.members[0].set.labels && parts == nil {
			parts = append(parts, n.summarize(n.members[0].set.labels))
		}
		if parts != nil && !slices.ContainsFunc(parts, func(s summary) bool { return s.labels == is }) {
			parts = append(parts, n.summarize(is))
		}
	}
	return parts
}

// summarize returns the summary of the members whose endpoint sets have the labels;
// without labels, of all.
func (n *endpoint) summarize(of labels) summary {
	s := summary{known: true, labels: of, state: EndpointDeparted}
	var best *Member
	for _, m := range n.members {
		if of != (labels{}) && m.set.labels != of {
			continue
		}
		s.lowerCap(m.limit)
		switch {
		case m.eligible() != nil:
			if best == nil || cmp.Or(cmp.Compare(m.readySet.priority, best.readySet.priority), cmp.Compare(m.set.name, best.set.name)) < 0 {
				best = m
			}
		case m.readySet != nil:
			s.state = EndpointDraining
		case s.state == EndpointDeparted:
			s.state = EndpointNotReady
		}
	}
	if best == nil {
		return s
	}
	s.state, s.priority = EndpointReady, best.readySet.priority
	s.weight, s.effectiveWeight = best.weight, best.effectiveWeight()
	for _, m := range n.members {
		if v := m.eligible(); v != nil && v.priority == s.priority && (of == labels{} || m.set.labels == of) {
			s.heldBack = s.heldBack || m.full || m.ramping()
		}
	}
	return s
}

// lowerCap takes up a member's cap, if it is the lowest so far.
func (s *summary) lowerCap(limit int64) {
	if limit != noLimit && (s.maxInFlight == 0 || limit < s.maxInFlight) {
		s.maxInFlight = limit
	}
}
