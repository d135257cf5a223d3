package leastconnbalancer_test

import (
	"fmt"

	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"
)

// Kinds of weights.
const (
	benchEqualWeights    = "equal"    // no endpoint has the attribute
	benchFourWeights     = "four"     // 1, 2, 3, 5 in turn
	benchDistinctWeights = "distinct" // each of 1 to n once, in no order
)

// benchEndpoints returns n endpoints of one address each. Every call makes them anew, as a resolver does.
func benchEndpoints(n int, weights string) []resolver.Endpoint {
	es := make([]resolver.Endpoint, n)
	for i := range es {
		addr := fmt.Sprintf("10.%d.%d.%d:8443", i>>16&255, i>>8&255, i&255)
		es[i] = resolver.Endpoint{Addresses: []resolver.Address{{Addr: addr}}}
		switch weights {
		case benchFourWeights:
			es[i] = weight.Set(es[i], weight.EndpointInfo{Weight: []uint32{1, 2, 3, 5}[i%4]})
		case benchDistinctWeights:
			// 7919 is prime, so its multiples modulo n differ for every n that it does not divide.
			es[i] = weight.Set(es[i], weight.EndpointInfo{Weight: uint32(1 + i*7919%n)})
		}
	}
	return es
}
