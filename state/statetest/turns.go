package statetest

import (
	"math"
	"slices"
)

// readySet is a ready set's choice among weights, by the rules that package order
// states.
type readySet struct {
	set   *endpointSet
	index int
	picks int
	waits map[float64]wait // by class: weights that are taken as one
	drawn bool             // one was chosen among several classes
}

// wait is how far away a class's turn is, below 0 when it is overdue. Chance decides
// what it is at first; then the model takes it from the snapshot.
type wait struct {
	time  float64
	known bool
}

// little is what rounding may do to a part of a step.
const little = 1e-3

// least is the phase that a class's score has when its turn is overdue.
const least = 1.0 / 1024

// in returns the members in the ready set's order that are so.
func (v *readySet) in(are func(mb *member) bool) []*member {
	return v.set.those(func(mb *member) bool { return mb.placed && mb.readySet == v.index && are(mb) })
}

func (v *readySet) size(class float64) int {
	return len(v.in(func(mb *member) bool { return mb.class == class }))
}

// step is the time between two turns of a class.
func (v *readySet) step(class float64) float64 {
	takers := len(v.in(func(mb *member) bool { return mb.class == class && mb.selectable }))
	return 1 / (float64(takers) * class)
}

// resized tells that by more members of a class may be chosen.
func (v *readySet) resized(class float64, by int) {
	is := len(v.in(func(mb *member) bool { return mb.class == class && mb.selectable }))
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

// near returns the class that a member of a weight is in, beside others.
func (v *readySet) near(weight float64, but *member) float64 {
	class, best := weight, math.Inf(1)
	for _, o := range v.in(func(mb *member) bool { return mb != but }) {
		d := math.Abs(weight - o.class)
		if d <= o.class/(1<<16) && (d < best || d == best && o.class < class) {
			class, best = o.class, d
		}
	}
	return class
}

// enter puts mb into its ready set's order.
func (mb *member) enter() {
	v := mb.set.readySets[mb.readySet]
	mb.class = v.near(mb.effective(), mb)
	mb.placed, mb.selectable = true, true
	v.resized(mb.class, 1)
}

// leave takes mb out of its ready set's order.
func (mb *member) leave() {
	v := mb.set.readySets[mb.readySet]
	mb.setSelectable(false)
	mb.placed = false
	if v.size(mb.class) == 0 {
		delete(v.waits, mb.class)
	}
	if len(v.waits) == 0 {
		v.drawn = false
	}
}

func (mb *member) setSelectable(may bool) {
	if may != mb.selectable {
		mb.selectable = may
		mb.set.readySets[mb.readySet].resized(mb.class, map[bool]int{true: 1, false: -1}[may])
	}
}

// reweigh gives mb, in an order, the class of its weight. One that is alone in its class
// takes along what part of a step it has to wait.
func (mb *member) reweigh() {
	v := mb.set.readySets[mb.readySet]
	was, selectable, drawn := mb.class, mb.selectable, v.drawn
	alone := v.size(was) == 1
	if !alone && v.near(mb.effective(), nil) == was {
		return
	}
	w := v.waits[was]
	w.time = max(0, w.time) * was
	mb.leave()
	v.drawn = drawn
	class := v.near(mb.effective(), mb)
	_, there := v.waits[class]
	mb.class, mb.placed, mb.selectable = class, true, selectable
	switch {
	case there && selectable:
		v.resized(class, 1)
	case there:
	case alone:
		w.time /= class
		v.waits[class] = w
	default:
		v.waits[class] = wait{}
	}
}

// level returns load over weight of a class, with so many more, where members that are
// aside do not count; +Inf where nobody may be chosen.
func (v *readySet) level(class float64, more int) float64 {
	ms := v.in(func(mb *member) bool { return mb.class == class && mb.free() })
	if len(ms) == 0 {
		return math.Inf(1)
	}
	low := lowest(ms)
	return (float64(low[0].endpoint.load()) + float64(len(ms)-len(low)+more)/float64(len(ms))) / class
}

// limit returns the level below which a class may be chosen: nobody gets a whole RPC
// above its share, or above what another would have with one more.
func (v *readySet) limit() float64 {
	load, weight, limit := 1.0, 0.0, math.Inf(1)
	for _, mb := range v.in((*member).free) {
		load += float64(mb.endpoint.load())
		weight += mb.class
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
func (v *readySet) best(forced bool) []*member {
	if len(v.in((*member).free)) == 0 {
		return nil
	}
	if len(v.waits) == 1 {
		return lowest(v.in((*member).free))
	}
	limit, chance := v.limit(), !v.drawn && !forced
	var best []*member
	for class, w := range v.waits {
		if v.level(class, 0) >= limit*(1+1e-9) {
			continue
		}
		if chance || !w.known || w.time <= little*v.step(class) || !v.earlier(w.time, limit) {
			best = append(best, lowest(v.in(func(mb *member) bool { return mb.class == class && mb.free() }))...)
		}
	}
	return best
}

// earlier reports whether a class below the limit has its turn before a time.
func (v *readySet) earlier(time, limit float64) bool {
	for class, w := range v.waits {
		if w.known && v.level(class, 0) < limit*(1-1e-9) && w.time < time-little*(time+v.step(class)) {
			return true
		}
	}
	return false
}

// charge moves the class of a member that is chosen to its next turn. A choice that was
// forced does not let time go on.
func (v *readySet) charge(mb *member, forced bool) {
	if len(v.waits) < 2 {
		return
	}
	w, chance := v.waits[mb.class], !v.drawn && !forced
	gone := max(0, w.time)
	if chance {
		gone = 0
	}
	if forced {
		w.time = gone + v.step(mb.class)
		v.waits[mb.class] = w
		return
	}
	v.drawn = true
	for class, o := range v.waits {
		v.waits[class] = wait{o.time - gone, o.known && (w.known || chance)}
	}
	v.waits[mb.class] = wait{v.step(mb.class), true}
}

// phase returns what a score counts of a class's wait, in steps.
func (v *readySet) phase(class float64) float64 {
	if len(v.waits) < 2 {
		return 1
	}
	return max(least, v.waits[class].time/v.step(class))
}
