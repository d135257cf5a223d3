package leastconnbalancer

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/resolver"

	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
	"github.com/leastconn/grpc-leastconn/state"
)

// endpointsOf returns the endpoints that have addresses. As gRPC's channel does,
// it makes an endpoint of each address of a state that has none, for parents
// that pass on addresses only.
func endpointsOf(s resolver.State) []resolver.Endpoint {
	if s.Endpoints == nil {
		eps := make([]resolver.Endpoint, len(s.Addresses))
		for i, a := range s.Addresses {
			//lint:ignore SA1019 an address that is in no endpoint has its attributes there
			eps[i], a.BalancerAttributes = resolver.Endpoint{Attributes: a.BalancerAttributes}, nil
			eps[i].Addresses = []resolver.Address{a}
		}
		return eps
	}
	bare := func(ep resolver.Endpoint) bool { return len(ep.Addresses) == 0 }
	if slices.ContainsFunc(s.Endpoints, bare) {
		return slices.DeleteFunc(slices.Clone(s.Endpoints), bare)
	}
	return s.Endpoints
}

// facts are what a resolver says of an endpoint, beside its identity.
type facts struct {
	weight   uint32
	priority uint32
	limit    *uint32 // of RPCs in flight; nil: the configuration's
}

// factsOf returns the endpoint's facts, an error when one is out of bounds.
func factsOf(ep resolver.Endpoint) (facts, error) {
	f := facts{weight: lcresolver.Weight(ep), priority: lcresolver.Priority(ep)}
	if f.weight > lcresolver.MaxWeight {
		return f, fmt.Errorf("%s: endpoint %s: weight %d: want 0 to %d", Name, ep.Addresses[0].Addr, f.weight, uint32(lcresolver.MaxWeight))
	}
	if limit, ok := lcresolver.MaxInFlight(ep); ok {
		if limit > lcresolver.MaxMaxInFlight {
			return f, fmt.Errorf("%s: endpoint %s: maxInFlight %d: want 0 to %d", Name, ep.Addresses[0].Addr, limit, uint32(lcresolver.MaxMaxInFlight))
		}
		f.limit = &limit
	}
	return f, nil
}

// identityOf returns what load state knows the endpoint by.
func identityOf(ep resolver.Endpoint) state.Identity {
	id := state.Identity{ID: lcresolver.ID(ep), Addrs: make([]string, len(ep.Addresses))}
	for i, a := range ep.Addresses {
		id.Addrs[i] = a.Addr
	}
	return id
}

// keyOf returns a string that is equal for equal identities: that of the id,
// else of the set of addresses.
func keyOf(ep resolver.Endpoint) string {
	if id := lcresolver.ID(ep); id != "" {
		return "\x00" + id
	}
	if len(ep.Addresses) == 1 {
		return ep.Addresses[0].Addr
	}
	addrs := identityOf(ep).Addrs
	slices.Sort(addrs)
	return strings.Join(slices.Compact(addrs), "\x00")
}

// sameAddrs reports whether two endpoints are reached by the same addresses.
func sameAddrs(a, b resolver.Endpoint) bool {
	as, bs := identityOf(a).Addrs, identityOf(b).Addrs
	slices.Sort(as)
	slices.Sort(bs)
	return slices.Equal(slices.Compact(as), slices.Compact(bs))
}

// sameEndpoint reports whether two endpoints are equal in all that a policy can
// see. Values that Go cannot compare count as different: attributes are other
// people's.
func sameEndpoint(a, b resolver.Endpoint) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return a.Attributes.Equal(b.Attributes) && slices.EqualFunc(a.Addresses, b.Addresses, resolver.Address.Equal)
}

// sameAttributes does so for the attributes of a state.
func sameAttributes(a, b *attributes.Attributes) bool {
	return sameEndpoint(resolver.Endpoint{Attributes: a}, resolver.Endpoint{Attributes: b})
}
