package statetest

import (
	"math"
	"slices"
)

// best returns the members that are due, or those with the lowest score.
func (r *endpointSet) best(readySet int, except []string) []*member {
	tried := func(mb *member) bool { return slices.Contains(except, mb.endpoint.addr) }
	due := r.due(readySet)
	free := slices.DeleteFunc(slices.Clone(due), tried)
	if len(due) > 0 && len(free) == len(due) {
		return free
	}
	low := math.Inf(1)
	var best []*member
	for _, mb := range slices.DeleteFunc(r.selectable(readySet), tried) {
		if mb.score() < low {
			low, best = mb.score(), nil
		}
		if mb.score() == low {
			best = append(best, mb)
		}
	}
	return append(best, free...)
}

// due returns the members that the ready set's next pick is due to: of those that
// start slowly and are empty, the ones that were due first, one in n ÷ factor picks.
func (r *endpointSet) due(readySet int) []*member {
	eligible := len(r.those(func(mb *member) bool { return mb.readySet == readySet && mb.eligible() }))
	first := r.readySets[readySet].picks + 1
	var due []*member
	for _, mb := range r.those(func(mb *member) bool { return mb.readySet == readySet && mb.minShare }) {
		at := mb.last + int(math.Ceil(float64(eligible)/mb.factor))
		if at < first {
			first, due = at, nil
		}
		if at == first {
			due = append(due, mb)
		}
	}
	return due
}

// bestIn returns what may be chosen in the first ready set that has room, and which
// that is. Where the first has nobody at a cap, it alone counts.
func (r *endpointSet) bestIn(readySets []int) (best []*member, readySet int, full bool) {
	for _, v := range readySets {
		if best := r.best(v, nil); len(best) > 0 {
			return best, v, false
		}
		full = full || len(r.those(func(mb *member) bool { return mb.readySet == v && mb.full() })) > 0
		if !full {
			break
		}
	}
	return nil, none, full
}

// Choose counts the choice of a ready set that avoided some addresses. "" is none.
func (m *model) Choose(id, readySet int, addr string, except ...string) {
	r := m.sets[id]
	var aside []*member // they go behind their equals
	for _, a := range except {
		if mb := r.members[a]; mb != nil && mb.readySet == readySet && mb.selectable {
			mb.selectable = false
			aside = append(aside, mb)
		}
	}
	if addr != "" {
		r.readySets[readySet].picks++
		m.endpoints[addr].picks++
		m.count(m.endpoints[addr], 1)
	}
	for _, mb := range aside {
		mb.selectable = true
		mb.classify(mb.classWeight)
	}
}
