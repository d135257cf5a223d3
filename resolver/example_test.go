package resolver_test

import (
	"fmt"

	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/resolver"
)

// A resolver that knows its service's pods says what it knows of each, and
// names the service.
func Example() {
	pod := grpcresolver.Endpoint{Addresses: []grpcresolver.Address{{Addr: "10.0.0.1:443"}, {Addr: "[fd00::1]:443"}}}
	pod = resolver.SetID(pod, "pod-7f9c")
	pod = resolver.SetWeight(pod, 3)
	state := resolver.SetResourceKey(grpcresolver.State{Endpoints: []grpcresolver.Endpoint{pod}}, "chat")

	fmt.Println(resolver.ResourceKey(state), resolver.ID(state.Endpoints[0]), resolver.Weight(state.Endpoints[0]))
	// Output: chat pod-7f9c 3
}

func ExampleSetWeight() {
	pod := grpcresolver.Endpoint{Addresses: []grpcresolver.Address{{Addr: "10.0.0.1:443"}}}
	fmt.Println("not said:", resolver.Weight(pod))
	fmt.Println("draining:", resolver.Weight(resolver.SetWeight(pod, 0)))
	// Output:
	// not said: 1
	// draining: 0
}
