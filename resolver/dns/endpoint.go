package dns

import (
	"cmp"
	"net/netip"
	"slices"

	"google.golang.org/grpc/resolver"

	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// endpoint is an endpoint of a list. Two are equal if a policy can see no
// difference.
type endpoint struct {
	addr     netip.AddrPort
	second   netip.AddrPort // the other one of a dual stack; the zero value is none
	priority uint16
	weight   uint16 // 0 is none
}

// normalize sorts a list by level and address, so that the order of records makes no
// difference, and leaves out repeats of an address: of these the highest level
// holds, then the highest weight.
func normalize(list []endpoint) []endpoint {
	addr := func(a, b endpoint) int {
		return cmp.Or(a.addr.Compare(b.addr), a.second.Compare(b.second))
	}
	level := func(a, b endpoint) int { return cmp.Compare(a.priority, b.priority) }
	slices.SortFunc(list, func(a, b endpoint) int {
		return cmp.Or(addr(a, b), level(a, b), cmp.Compare(b.weight, a.weight))
	})
	list = slices.CompactFunc(list, func(a, b endpoint) bool { return addr(a, b) == 0 })
	slices.SortStableFunc(list, level)
	return list
}

// stateOf returns the list as gRPC takes it. Addresses are there for policies
// that do not know of endpoints.
func stateOf(list []endpoint) resolver.State {
	s := resolver.State{Endpoints: make([]resolver.Endpoint, len(list))}
	for i, e := range list {
		ep := resolver.Endpoint{Addresses: []resolver.Address{{Addr: e.addr.String()}}}
		if e.second.IsValid() {
			ep.Addresses = append(ep.Addresses, resolver.Address{Addr: e.second.String()})
		}
		if e.weight > 0 {
			ep = lcresolver.SetPriority(lcresolver.SetWeight(ep, uint32(e.weight)), uint32(e.priority))
		}
		s.Endpoints[i] = ep
		s.Addresses = append(s.Addresses, ep.Addresses...)
	}
	return s
}
