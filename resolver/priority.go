package resolver

import "google.golang.org/grpc/resolver"

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
