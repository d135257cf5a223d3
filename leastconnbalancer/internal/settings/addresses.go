package settings

import (
	"slices"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"
)

// Addresses returns the addresses of one SubConn, whose transports l hears of. It
// returns addrs themselves unless the channel's credentials are of Credentials,
// which find l there. gRPC hands an address's Attributes to the handshake, not
// its BalancerAttributes.
func Addresses(channel balancer.BuildOptions, addrs []resolver.Address, l Listener) []resolver.Address {
	if !readsAlong(transportCredentials(channel)) {
		return addrs
	}
	addrs = slices.Clone(addrs) // its owner may read it
	for i := range addrs {
		addrs[i].Attributes = addrs[i].Attributes.WithValue(attribute{}, &attached{l})
	}
	return addrs
}

// listenerOf returns the listener that Addresses has attached, or nil.
func listenerOf(a *attributes.Attributes) Listener {
	if at, ok := a.Value(attribute{}).(*attached); ok {
		return at.listener
	}
	return nil
}

// attribute is the key of the listener among an address's attributes.
type attribute struct{}

// attached is a pointer's target, since gRPC may compare attributes and a
// listener need not be comparable.
type attached struct{ listener Listener }

// gRPC prints attributes in its log.

func (attribute) String() string { return "least_conn" }

func (*attached) String() string { return "hears the stream limit" }
