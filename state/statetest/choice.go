package statetest

// bestBut returns what may be chosen where some addresses are excluded, if one is.
func (r *endpointSet) bestBut(readySet int, except []string) []*member {
	aside := r.setAside(readySet, except)
	best := r.readySets[readySet].best(len(aside) > 0)
	for _, mb := range aside {
		mb.aside = false
	}
	return best
}

// setAside sets the members of some addresses aside that may be chosen.
func (r *endpointSet) setAside(readySet int, addrs []string) []*member {
	var aside []*member
	for _, a := range addrs {
		if mb := r.members[a]; mb != nil && mb.readySet == readySet && mb.free() {
			mb.aside = true
			aside = append(aside, mb)
		}
	}
	return aside
}

// bestIn returns what may be chosen in the first ready set that has room, and which
// that is. Where the first has nobody at a cap, it alone counts.
func (r *endpointSet) bestIn(readySets []int, forced bool) (best []*member, readySet int, full bool) {
	for _, v := range readySets {
		if best := r.readySets[v].best(forced); len(best) > 0 {
			return best, v, false
		}
		full = full || len(r.those(func(mb *member) bool { return mb.readySet == v && mb.full() })) > 0
		if !full {
			break
		}
	}
	return nil, none, full
}

// Choose counts the choice of a ready set that avoided some addresses, or that was
// forced otherwise.
func (m *model) Choose(id, readySet int, addr string, forced bool, except ...string) {
	r := m.sets[id]
	aside := r.setAside(readySet, except)
	v := r.readySets[readySet]
	v.picks++
	v.charge(r.members[addr], forced || len(aside) > 0)
	m.endpoints[addr].picks++
	m.count(m.endpoints[addr], 1)
	for _, mb := range aside {
		mb.aside = false
	}
}
