package statetest

import (
	"math"
	"slices"
)

// Best returns the addresses that a ready set may choose when those of except were
// tried, sorted.
func (m *Model) Best(id, view int, except ...string) []string {
	return sorted(m.rosters[id].best(view, except))
}

// best returns the members that are due, or those with the lowest score.
func (r *roster) best(view int, except []string) []*member {
	tried := func(mb *member) bool { return slices.Contains(except, mb.node.addr) }
	due := r.due(view)
	free := slices.DeleteFunc(slices.Clone(due), tried)
	if len(due) > 0 && len(free) == len(due) {
		return free
	}
	low := math.Inf(1)
	var best []*member
	for _, mb := range slices.DeleteFunc(r.seated(view), tried) {
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
// ramp and are empty, the ones whose turn came first, one in n ÷ share picks.
func (r *roster) due(view int) []*member {
	takers := len(r.those(func(mb *member) bool { return mb.view == view && mb.takes() }))
	first := r.views[view].picks + 1
	var due []*member
	for _, mb := range r.those(func(mb *member) bool { return mb.view == view && mb.waits }) {
		at := mb.last + int(math.Ceil(float64(takers)/mb.share))
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
func (r *roster) bestIn(views []int) (best []*member, view int, full bool) {
	for _, v := range views {
		if best := r.best(v, nil); len(best) > 0 {
			return best, v, false
		}
		full = full || len(r.those(func(mb *member) bool { return mb.view == v && mb.full() })) > 0
		if !full {
			break
		}
	}
	return nil, none, full
}

// Choose counts a choice of a ready set that avoided some addresses; "" is none.
func (m *Model) Choose(id, view int, addr string, except ...string) {
	r := m.rosters[id]
	var aside []*member // they take their seats anew
	for _, a := range except {
		if mb := r.members[a]; mb != nil && mb.view == view && mb.seated {
			mb.seated = false
			aside = append(aside, mb)
		}
	}
	if addr != "" {
		r.views[view].picks++
		m.nodes[addr].picks++
		m.count(m.nodes[addr], 1)
	}
	for _, mb := range aside {
		mb.seated = true
		mb.sit(mb.taken)
	}
}
