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
