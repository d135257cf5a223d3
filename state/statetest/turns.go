package statetest

import (
	"math"
	"slices"
)

// readySet is a ready set, with an order for each kind.
type readySet struct {
	picks  int
	orders [kinds]*order
}

func newReadySet(set *endpointSet, index int) *readySet {
	v := &readySet{}
	for kind := range kinds {
		v.orders[kind] = &order{set: set, readySet: index, kind: kind, waits: map[float64]wait{}}
	}
	return v
}

// orderKind tells the orders of a ready set apart: of its eligible members, of which
// those that are full are not chosen, and of those that penalties alone fill.
type orderKind int

const (
	withRoom orderKind = iota
	overfull
	kinds
)

// order is the choice among weights in one of a ready set's orders, by the rules that
// package order of state states.
type order struct {
	set      *endpointSet
	readySet int
	kind     orderKind
	waits    map[float64]wait // by class: weights that are taken as one
	drawn    bool             // one was chosen among several classes
}

// seat is a member's place in an order.
type seat struct {
	placed     bool    // it is there
	selectable bool    // and may be chosen
	aside      bool    // but for now
	class      float64 // its weight there: a near one may have been there before
	either     bool    // which of near ones was there before is chance
	before     float64 // what class was then
}

func (s *seat) free() bool { return s.selectable && !s.aside }

func (v *order) seat(mb *member) *seat { return &mb.seats[v.kind] }

func (v *order) class(mb *member) float64 { return mb.seats[v.kind].class }

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

// in returns the members in the order whose seats are so, by address.
func (v *order) in(are func(s *seat) bool) []*member {
	return v.set.those(func(mb *member) bool {
		s := v.seat(mb)
		return s.placed && mb.readySet == v.readySet && are(s)
	})
}

// free returns the members that may be chosen.
func (v *order) free() []*member { return v.in((*seat).free) }

func (v *order) size(class float64) int {
	return len(v.in(func(s *seat) bool { return s.class == class }))
}

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

// near returns the class that a member of a weight is in, beside others.
func (v *order) near(weight float64, but *member) float64 {
	class, best := weight, math.Inf(1)
	for _, o := range v.in(func(s *seat) bool { return but == nil || s != v.seat(but) }) {
		c := v.class(o)
		d := math.Abs(weight - c)
		if d <= c/(1<<16) && (d < best || d == best && c < class) {
			class, best = c, d
		}
	}
	return class
}

// enter puts mb, which has a weight, into the order.
func (v *order) enter(mb *member, weight float64) {
	s := v.seat(mb)
	s.class = v.near(weight, mb)
	s.placed, s.selectable = true, true
	v.resized(s.class, 1)
}

// leave takes mb out of the order.
func (v *order) leave(mb *member) {
	s := v.seat(mb)
	v.setSelectable(mb, false)
	s.placed = false
	if v.size(s.class) == 0 {
		delete(v.waits, s.class)
	}
	if len(v.waits) == 0 {
		v.drawn = false
	}
}

func (v *order) setSelectable(mb *member, may bool) {
	if s := v.seat(mb); may != s.selectable {
		s.selectable = may
		v.resized(s.class, map[bool]int{true: 1, false: -1}[may])
	}
}

// reweigh gives mb, in the order, the class of its weight. One that is alone in its class
// takes along what part of a step it has to wait.
func (v *order) reweigh(mb *member, weight float64) {
	s := v.seat(mb)
	was, selectable, drawn := s.class, s.selectable, v.drawn
	alone := v.size(was) == 1
	if !alone && v.near(weight, nil) == was {
		return
	}
	w := v.waits[was]
	w.time = max(0, w.time) * was
	v.leave(mb)
	v.drawn = drawn
	class := v.near(weight, mb)
	_, there := v.waits[class]
	s.class, s.placed, s.selectable = class, true, selectable
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
