package resolver

import "google.golang.org/grpc/resolver"

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
