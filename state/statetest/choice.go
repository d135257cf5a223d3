package statetest

import "slices"

// best returns the members of an order of which one is chosen next.
func (r *endpointSet) best(readySet int, kind orderKind, forced bool, except []string) []*member {
	o := r.readySets[readySet].orders[kind]
	aside := o.setAside(except)
	best := o.best(forced || len(aside) > 0)
	o.putBack(aside)
	return best
}

// setAside sets the members of some addresses aside that may be chosen.
func (v *order) setAside(addrs []string) []*member {
	aside := slices.DeleteFunc(v.free(), func(mb *member) bool { return !slices.Contains(addrs, mb.endpoint.addr) })
	for _, mb := range aside {
		v.seat(mb).aside = true
	}
	return aside
}

func (v *order) putBack(aside []*member) {
	for _, mb := range aside {
		v.seat(mb).aside = false
	}
}

// choice is where and among whom to choose.
type choice struct {
	best     []*member
	readySet int
	in       orderKind
	forced   bool // the choice is not the ready set's own
}

// bestIn returns what may be chosen in the first ready set that has somebody with room
// who was not tried; else, when nobody is busy, who is full by penalties alone. Where
// the first has nobody at a cap, it alone counts for those without tries.
func (r *endpointSet) bestIn(readySets []int, forced bool, tried []string) (c choice, full bool) {
	busy := false
	try := func(v int, in orderKind) bool {
		c = choice{r.best(v, in, forced, tried), v, in, forced}
		return len(c.best) > 0
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

// bestNoRoom returns what an RPC that may not wait for its connection is given, and the
// addresses that it avoids.
func (r *endpointSet) bestNoRoom(readySets []int) (c choice, except []string) {
	for _, v := range readySets {
		c = choice{r.best(v, noRoom, true, nil), v, noRoom, true}
		if len(c.best) > 0 {
			return c, nil
		}
	}
	for _, mb := range r.those((*member).overCap) {
		except = append(except, mb.endpoint.addr)
	}
	for _, v := range readySets {
		c = choice{r.best(v, overfull, true, except), v, overfull, true}
		if len(c.best) > 0 {
			break
		}
	}
	return c, except
}

// Choose counts what c has come to, which avoided some addresses.
func (m *model) Choose(id int, c choice, addr string, except ...string) *lease {
	r := m.sets[id]
	v := r.readySets[c.readySet]
	o := v.orders[c.in]
	aside := o.setAside(except)
	v.picks++
	o.charge(r.members[addr], c.forced || len(aside) > 0)
	le := m.newLease(r, m.endpoints[addr])
	le.connect(r.members[addr].connection)
	o.putBack(aside)
	return le
}
