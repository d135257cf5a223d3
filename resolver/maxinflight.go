package resolver

import "google.golang.org/grpc/resolver"

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
