package statetest

import (
	"math"
	"slices"
)

// wait is how far away a class's turn is, below 0 when it is overdue. Chance decides
// what it is at first; then the model takes it from the snapshot.
type wait struct {
	time  float64
	known bool
}

// little is what rounding may do to a part of a step. Virtual time is rounded, so the
// last quarter of a step is no more exact than the others.
const little = 1e-3

// same reports whether two parts of a step differ by rounding alone.
func same(part, want float64) bool { return math.Abs(part-want) <= little*max(want, 0.25) }

// least is the phase that a class's score has when its turn is overdue.
const least = 1.0 / 1024

// step is the time between two turns of a class.
func (v *order) step(class float64) float64 {
	takers := len(v.in(func(s *seat) bool { return s.class == class && s.selectable }))
	return 1 / (float64(takers) * class)
}

// resized tells that by more members of a class may be chosen.
func (v *order) resized(class float64, by int) {
	is := len(v.in(func(s *seat) bool { return s.class == class && s.selectable }))
	w := v.waits[class]
	switch was := is - by; {
	case is == 0:
	case was == 0:
		w.time = min(max(0, w.time), v.step(class))
	default:
		w.time = max(0, w.time) * float64(was) / float64(is)
	}
	v.waits[class] = w
}

// level returns load over weight of a class, with so many more, where members that are
// aside do not count; +Inf where nobody may be chosen.
func (v *order) level(class float64, more int) float64 {
	ms := v.in(func(s *seat) bool { return s.class == class && s.free() })
	if len(ms) == 0 {
		return math.Inf(1)
	}
	low := lowest(ms)
	return (float64(low[0].endpoint.load()) + float64(len(ms)-len(low)+more)/float64(len(ms))) / class
}

// limit returns the level below which a class may be chosen: nobody gets a whole RPC
// above its share, or above what another would have with one more.
func (v *order) limit() float64 {
	load, weight, limit := 1.0, 0.0, math.Inf(1)
	for _, mb := range v.free() {
		load += float64(mb.endpoint.load())
		weight += v.class(mb)
	}
	for class := range v.waits {
		limit = min(limit, v.level(class, 1))
	}
	return min(limit, load/weight)
}

func lowest(ms []*member) []*member {
	low := slices.MinFunc(ms, func(a, b *member) int { return a.endpoint.load() - b.endpoint.load() }).endpoint.load()
	return slices.DeleteFunc(slices.Clone(ms), func(mb *member) bool { return mb.endpoint.load() > low })
}

// best returns the members of which one is chosen next. What rounding or chance decides
// may be either.
func (v *order) best(forced bool) []*member {
	if len(v.free()) == 0 {
		return nil
	}
	if len(v.waits) == 1 {
		return lowest(v.free())
	}
	limit, chance := v.limit(), !v.drawn && !forced
	var best []*member
	for class, w := range v.waits {
		if v.level(class, 0) >= limit*(1+1e-9) {
			continue
		}
		if chance || !w.known || w.time <= little*v.step(class) || !v.earlier(w.time, limit) {
			best = append(best, lowest(v.in(func(s *seat) bool { return s.class == class && s.free() }))...)
		}
	}
	return best
}

// earlier reports whether a class below the limit has its turn before a time.
func (v *order) earlier(time, limit float64) bool {
	for class, w := range v.waits {
		if w.known && v.level(class, 0) < limit*(1-1e-9) && w.time < time-little*(time+v.step(class)) {
			return true
		}
	}
	return false
}

// charge moves the class of a member that is chosen to its next turn. A choice that was
// forced does not let time go on.
func (v *order) charge(mb *member, forced bool) {
	if len(v.waits) < 2 {
		return
	}
	own := v.class(mb)
	w, chance := v.waits[own], !v.drawn && !forced
	gone := max(0, w.time)
	if chance {
		gone = 0
	}
	if forced {
		w.time = gone + v.step(own)
		v.waits[own] = w
		return
	}
	v.drawn = true
	for class, o := range v.waits {
		v.waits[class] = wait{o.time - gone, o.known && (w.known || chance)}
	}
	v.waits[own] = wait{v.step(own), true}
}

// phase returns what a score counts of a class's wait, in steps.
func (v *order) phase(class float64) float64 {
	if len(v.waits) < 2 {
		return 1
	}
	return max(least, v.waits[class].time/v.step(class))
}
