package statetest

import (
	"math"
	"slices"
)

// best returns the members of an order that are due, or those with the lowest score.
func (r *endpointSet) best(readySet int, in orderKind, except []string) []*member {
	tried := func(mb *member) bool { return slices.Contains(except, mb.endpoint.addr) }
	var due []*member
	if in == withRoom {
		due = r.due(readySet)
	}
	free := slices.DeleteFunc(slices.Clone(due), tried)
	if len(due) > 0 && len(free) == len(due) {
		return free
	}
	low := math.Inf(1)
	var best []*member
	for _, mb := range slices.DeleteFunc(r.selectable(readySet, in), tried) {
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

// choice is where and among whom to choose.
type choice struct {
	best     []*member
	readySet int
	in       orderKind
	looked   []choice // the places, without best, that were looked at before
}

// bestIn returns what may be chosen in the first ready set that has somebody with room
// who was not tried; else, when nobody is busy, who is full by penalties alone. Where
// the first has nobody at a cap, it alone counts for those without tries.
func (r *endpointSet) bestIn(readySets []int, tried []string) (c choice, full bool) {
	busy := false
	try := func(v int, in orderKind) bool {
		if c.best = r.best(v, in, tried); len(c.best) > 0 {
			c.readySet, c.in = v, in
			return true
		}
		c.looked = append(c.looked, choice{readySet: v, in: in})
		return false
	}
	for _, v := range readySets {
		if try(v, withRoom) {
			return c, false
		}
		full, busy = full || r.count(v, (*member).full) > 0, busy || r.count(v, (*member).busy) > 0
		if !full && len(tried) == 0 {
			break
		}
	}
	if full && !busy {
		for _, v := range readySets {
			if try(v, overfull) {
				return c, false
			}
		}
	}
	return c, full
}

// count returns how many members of a ready set are so.
func (r *endpointSet) count(readySet int, is func(*member) bool) int {
	return len(r.those(func(mb *member) bool { return mb.readySet == readySet && is(mb) }))
}

// Choose counts what c has come to, which avoided some addresses. "" is none.
func (m *model) Choose(id int, c choice, addr string, except ...string) {
	for _, before := range c.looked {
		m.Choose(id, before, "", except...)
	}
	r, readySet := m.sets[id], c.readySet
	var aside []*member // they go behind their equals
	for _, a := range except {
		if mb := r.members[a]; mb != nil && mb.readySet == readySet && mb.in == c.in && c.in != nowhere {
			mb.in = nowhere
			aside = append(aside, mb)
		}
	}
	if addr != "" {
		r.readySets[readySet].picks++
		m.endpoints[addr].picks++
		m.count(m.endpoints[addr], 1)
	}
	for _, mb := range aside {
		mb.in = c.in
		mb.classify(mb.classWeight)
	}
}
