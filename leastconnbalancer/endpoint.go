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

// endpoint is an entry of a resolver's list and all that the policy reads in it.
// Once it is read, it has nothing that the resolver may still change.
type endpoint struct {
	resolver.Endpoint
	key      string         // equal for equal identities
	identity state.Identity // what load state knows it by: its addresses are sorted, each is there once
	facts    facts
}

// facts are what a resolver says of an endpoint, beside its identity.
type facts struct {
	weight   uint32
	priority uint32
	limit    *uint32 // of RPCs in flight; nil: the configuration's
}

// identify returns the endpoint with its key, to look it up. read does the rest.
func identify(ep resolver.Endpoint) endpoint {
	e := endpoint{Endpoint: ep}
	e.identity.ID = lcresolver.ID(ep)
	if len(ep.Addresses) > 1 {
		e.identity.Addrs = sortedAddrs(ep.Addresses)
	}
	switch {
	case e.identity.ID != "":
		e.key = "\x00" + e.identity.ID
	case len(ep.Addresses) == 1: // by far the most; nothing is allocated for it
		e.key = ep.Addresses[0].Addr
	default:
		e.key = strings.Join(e.identity.Addrs, "\x00")
	}
	return e
}

// read completes the endpoint, to be kept. It fails when a fact is out of bounds.
func (e *endpoint) read() error {
	if e.identity.Addrs == nil {
		e.identity.Addrs = sortedAddrs(e.Addresses)
	}
	e.Addresses = slices.Clone(e.Addresses)
	e.facts = facts{weight: lcresolver.Weight(e.Endpoint), priority: lcresolver.Priority(e.Endpoint)}
	if w := e.facts.weight; w > lcresolver.MaxWeight {
		return e.outOfBounds("weight", w, lcresolver.MaxWeight)
	}
	if limit, ok := lcresolver.MaxInFlight(e.Endpoint); ok {
		if limit > lcresolver.MaxMaxInFlight {
			return e.outOfBounds("maxInFlight", limit, lcresolver.MaxMaxInFlight)
		}
		e.facts.limit = &limit
	}
	return nil
}

func (e *endpoint) outOfBounds(fact string, value, most uint32) error {
	return fmt.Errorf("%s: endpoint %s: %s %d: want 0 to %d", Name, e.Addresses[0].Addr, fact, value, most)
}

// sortedAddrs returns the addresses, each once.
func sortedAddrs(as []resolver.Address) []string {
	addrs := make([]string, len(as))
	for i, a := range as {
		addrs[i] = a.Addr
	}
	slices.Sort(addrs)
	return slices.Compact(addrs)
}

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
