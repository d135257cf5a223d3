package main

import (
	"google.golang.org/grpc/resolver"

	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// list is what a channel's resolver says: by index of the members, how it differs from the list of a good day.
type list struct {
	out        map[int]bool
	weights    map[int]uint32
	priorities map[int]uint32
	dual       map[int]uint32 // of two addresses, and odd if the first is the usual one
	empty      bool
	turn       int // how far it is rotated
}

func newList() list {
	return list{out: map[int]bool{}, weights: map[int]uint32{}, priorities: map[int]uint32{}, dual: map[int]uint32{}}
}

// listed returns the members that the list has now.
func (l *list) listed(spec channelSpec, f *fleet) []*member {
	var all []*member
	if l.empty {
		return nil
	}
	for i := range f.members {
		m := f.members[(i+l.turn)%len(f.members)]
		if m.index%spec.each == 0 && !l.out[m.index] {
			all = append(all, m)
		}
	}
	return all
}

// endpoints returns the list as a resolver gives it.
func (l *list) endpoints(spec channelSpec, f *fleet) []resolver.Endpoint {
	eps := []resolver.Endpoint{}
	for _, m := range l.listed(spec, f) {
		ep := l.endpoint(m)
		if spec.ids {
			ep = lcresolver.SetID(ep, m.name)
		}
		if w, ok := l.weights[m.index]; ok {
			ep = lcresolver.SetWeight(ep, w)
		}
		p, ok := l.priorities[m.index]
		if !ok {
			p = uint32(m.index % spec.levels)
		}
		eps = append(eps, lcresolver.SetPriority(ep, p))
	}
	return eps
}

// endpoint returns the member's endpoint with its addresses.
func (l *list) endpoint(m *member) resolver.Endpoint {
	usual, direct := resolver.Address{Addr: m.now().addr}, resolver.Address{Addr: m.now().direct}
	order, two := l.dual[m.index]
	switch {
	case !two:
		return resolver.Endpoint{Addresses: []resolver.Address{usual}}
	case order%2 == 1:
		return resolver.Endpoint{Addresses: []resolver.Address{usual, direct}}
	default:
		return resolver.Endpoint{Addresses: []resolver.Address{direct, usual}}
	}
}
