package resolver_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/experimental/balancer/weight"
	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/resolver"
)

// endpoint returns one that has an attribute of somebody else's.
func endpoint() grpcresolver.Endpoint {
	return grpcresolver.Endpoint{
		Addresses:  []grpcresolver.Address{{Addr: "10.0.0.1:443"}},
		Attributes: attributes.New("theirs", "kept"),
	}
}

func TestWeight(t *testing.T) {
	grpcs := func(w uint32) grpcresolver.Endpoint { return weight.Set(endpoint(), weight.EndpointInfo{Weight: w}) }
	for name, tc := range map[string]struct {
		endpoint grpcresolver.Endpoint
		want     uint32
	}{
		"none":                     {endpoint(), 1},
		"none, without attributes": {grpcresolver.Endpoint{}, 1},
		"ours":                     {resolver.SetWeight(endpoint(), 7), 7},
		"ours, 0 drains":           {resolver.SetWeight(endpoint(), 0), 0},
		"ours, on nothing":         {resolver.SetWeight(grpcresolver.Endpoint{}, 7), 7},
		"ours, the last holds":     {resolver.SetWeight(resolver.SetWeight(endpoint(), 7), 8), 8},
		"ours, above the bounds":   {resolver.SetWeight(endpoint(), math.MaxUint32), math.MaxUint32},
		"grpc's":                   {grpcs(9), 9},
		"grpc's 0 is none":         {grpcs(0), 1},
		"ours before grpc's":       {resolver.SetWeight(grpcs(9), 7), 7},
		"our 0 before grpc's":      {resolver.SetWeight(grpcs(9), 0), 0},
		"ours, then grpc's":        {weight.Set(resolver.SetWeight(endpoint(), 7), weight.EndpointInfo{Weight: 9}), 7},
	} {
		require.Equal(t, tc.want, resolver.Weight(tc.endpoint), name)
	}
	require.Equal(t, uint32(1<<31), uint32(resolver.MaxWeight))
}

func TestID(t *testing.T) {
	require.Empty(t, resolver.ID(grpcresolver.Endpoint{}))
	require.Empty(t, resolver.ID(endpoint()))
	require.Equal(t, "u", resolver.ID(resolver.SetID(endpoint(), "u")))
	require.Equal(t, "v", resolver.ID(resolver.SetID(resolver.SetID(endpoint(), "u"), "v")))
	require.Empty(t, resolver.ID(resolver.SetID(resolver.SetID(endpoint(), "u"), "")))
}

func TestResourceKey(t *testing.T) {
	require.Empty(t, resolver.ResourceKey(grpcresolver.State{}))
	s := grpcresolver.State{Attributes: attributes.New("theirs", "kept")}
	require.Empty(t, resolver.ResourceKey(s))
	require.Equal(t, "chat", resolver.ResourceKey(resolver.SetResourceKey(s, "chat")))
	require.Equal(t, "kept", resolver.SetResourceKey(s, "chat").Attributes.Value("theirs"))
}

// The facts of an endpoint are independent of each other.
func TestFactsTogether(t *testing.T) {
	ep := resolver.SetID(resolver.SetWeight(endpoint(), 7), "u")
	require.EqualValues(t, 7, resolver.Weight(ep))
	require.Equal(t, "u", resolver.ID(ep))
	require.Equal(t, "kept", ep.Attributes.Value("theirs"))
	require.Equal(t, endpoint().Addresses, ep.Addresses)
}

// Setters leave their argument as it is.
func TestSettersCopy(t *testing.T) {
	ep := resolver.SetID(resolver.SetWeight(endpoint(), 7), "u")
	s := resolver.SetResourceKey(grpcresolver.State{}, "chat")
	resolver.SetWeight(ep, 8)
	resolver.SetID(ep, "v")
	resolver.SetResourceKey(s, "mail")
	require.EqualValues(t, 7, resolver.Weight(ep))
	require.Equal(t, "u", resolver.ID(ep))
	require.Equal(t, "chat", resolver.ResourceKey(s))
}

// gRPC and the policy tell by equal attributes that nothing has changed.
func TestEqualFactsAreEqualAttributes(t *testing.T) {
	set := func(w uint32, id string) *attributes.Attributes {
		return resolver.SetID(resolver.SetWeight(endpoint(), w), id).Attributes
	}
	require.True(t, set(7, "u").Equal(set(7, "u")))
	require.False(t, set(7, "u").Equal(set(8, "u")))
	require.False(t, set(7, "u").Equal(set(7, "v")))
	require.False(t, set(0, "u").Equal(endpoint().Attributes))

	key := func(k string) *attributes.Attributes {
		return resolver.SetResourceKey(grpcresolver.State{}, k).Attributes
	}
	require.True(t, key("chat").Equal(key("chat")))
	require.False(t, key("chat").Equal(key("mail")))
}
