package statetest

import (
	"math"
	"time"
)

// readySet is a ready set, with an order for each kind.
type readySet struct {
	picks  int
	until  time.Duration // how long RPCs may wait for members that connect
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
// those that are full are not chosen, of those that penalties alone fill, and of those
// that their connections alone do.
type orderKind int

const (
	withRoom orderKind = iota
	overfull
	noRoom
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
