package resolver

import (
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"
)

// MaxWeight is the highest weight that the policy accepts, 2³¹: the whole of
// xDS's fixed-point shares. An update with a higher one is refused.
const MaxWeight = 1 << 31

type weightKey struct{}

// SetWeight gives the endpoint a weight: its share of the load relative to the
// other endpoints, 1 to [MaxWeight]. 0 means drain: the endpoint gets no new
// RPCs, those it has live on.
func SetWeight(ep resolver.Endpoint, w uint32) resolver.Endpoint {
	ep.Attributes = ep.Attributes.WithValue(weightKey{}, w)
	return ep
}

// Weight returns the weight that [SetWeight] gave the endpoint; without one, a
// weight above 0 that was set by grpc's experimental/balancer/weight, as its xDS
// client does; else 1.
func Weight(ep resolver.Endpoint) uint32 {
	if w, ok := ep.Attributes.Value(weightKey{}).(uint32); ok {
		return w
	}
	if w := weight.FromEndpoint(ep).Weight; w > 0 {
		return w
	}
	return 1
}

type priorityKey struct{}

// SetPriority puts the endpoint on a priority level: 0, where endpoints are by
// default, is the highest, as in gRPC and xDS. RPCs go to the highest level that
// is available.
func SetPriority(ep resolver.Endpoint, priority uint32) resolver.Endpoint {
	ep.Attributes = ep.Attributes.WithValue(priorityKey{}, priority)
	return ep
}

// Priority returns the level that [SetPriority] put the endpoint on, 0 without
// one.
func Priority(ep resolver.Endpoint) uint32 {
	p, _ := ep.Attributes.Value(priorityKey{}).(uint32)
	return p
}

// MaxMaxInFlight is the highest cap that the policy accepts, 2³¹ − 1. An update
// with a higher one is refused.
const MaxMaxInFlight = 1<<31 - 1

type maxInFlightKey struct{}

// SetMaxInFlight caps the RPCs that may be in flight on the endpoint, of all
// channels of the process together, 1 to [MaxMaxInFlight]; 0: no cap. It wins
// over maxInFlight of the policy's configuration.
func SetMaxInFlight(ep resolver.Endpoint, limit uint32) resolver.Endpoint {
	ep.Attributes = ep.Attributes.WithValue(maxInFlightKey{}, limit)
	return ep
}

// MaxInFlight returns the cap that [SetMaxInFlight] gave the endpoint, and
// whether it gave one.
func MaxInFlight(ep resolver.Endpoint) (limit uint32, ok bool) {
	limit, ok = ep.Attributes.Value(maxInFlightKey{}).(uint32)
	return limit, ok
}

type idKey struct{}

// SetID gives the endpoint an explicit identity, such as a pod's UID: it is the
// same endpoint wherever the id is the same, whatever its addresses, and never
// the same as one with another id. An empty id is none: then addresses tell.
func SetID(ep resolver.Endpoint, id string) resolver.Endpoint {
	ep.Attributes = ep.Attributes.WithValue(idKey{}, id)
	return ep
}

// ID returns the identity that [SetID] gave the endpoint, "" without one.
func ID(ep resolver.Endpoint) string {
	id, _ := ep.Attributes.Value(idKey{}).(string)
	return id
}

type resourceKeyKey struct{}

// SetResourceKey names the service that the state is of: channels with the same
// key share their load, whatever their targets. The policy's own configuration
// comes before it; an empty key is none.
func SetResourceKey(s resolver.State, key string) resolver.State {
	s.Attributes = s.Attributes.WithValue(resourceKeyKey{}, key)
	return s
}

// ResourceKey returns the key that [SetResourceKey] gave the state, "" without
// one.
func ResourceKey(s resolver.State) string {
	key, _ := s.Attributes.Value(resourceKeyKey{}).(string)
	return key
}
