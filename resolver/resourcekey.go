package resolver

import "google.golang.org/grpc/resolver"

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
