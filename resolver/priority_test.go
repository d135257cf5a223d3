package resolver_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/attributes"
	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/resolver"
)

func TestPriority(t *testing.T) {
	for name, tc := range map[string]struct {
		endpoint grpcresolver.Endpoint
		want     uint32
	}{
		"none":                     {endpoint(), 0},
		"none, without attributes": {grpcresolver.Endpoint{}, 0},
		"set":                      {resolver.SetPriority(endpoint(), 2), 2},
		"the highest":              {resolver.SetPriority(endpoint(), 0), 0},
		"the lowest":               {resolver.SetPriority(endpoint(), math.MaxUint32), math.MaxUint32},
		"on nothing":               {resolver.SetPriority(grpcresolver.Endpoint{}, 2), 2},
		"the last holds":           {resolver.SetPriority(resolver.SetPriority(endpoint(), 2), 1), 1},
		"its address's":            {grpcresolver.Endpoint{Addresses: []grpcresolver.Address{prioritised}}, 0},
	} {
		require.Equal(t, tc.want, resolver.Priority(tc.endpoint), name)
	}
}

// prioritised has a priority where none is read.
var prioritised = grpcresolver.Address{
	Addr:       "10.0.0.1:443",
	Attributes: resolver.SetPriority(endpoint(), 2).Attributes,
	//lint:ignore SA1019 inside an endpoint it must not be read
	BalancerAttributes: resolver.SetPriority(endpoint(), 2).Attributes,
}

func TestPriorityStandsBesideOtherFacts(t *testing.T) {
	ep := resolver.SetID(resolver.SetWeight(resolver.SetPriority(endpoint(), 3), 7), "u")
	require.EqualValues(t, 3, resolver.Priority(ep))
	require.EqualValues(t, 7, resolver.Weight(ep))
	require.Equal(t, "u", resolver.ID(ep))
	require.Equal(t, "kept", ep.Attributes.Value("theirs"))
	require.Equal(t, endpoint().Addresses, ep.Addresses)

	resolver.SetPriority(ep, 4)
	require.EqualValues(t, 3, resolver.Priority(ep), "a setter leaves its argument as it is")
}

func TestEqualPrioritiesAreEqualAttributes(t *testing.T) {
	set := func(p uint32) *attributes.Attributes { return resolver.SetPriority(endpoint(), p).Attributes }
	require.True(t, set(1).Equal(set(1)))
	require.False(t, set(1).Equal(set(2)))
	require.False(t, set(1).Equal(resolver.SetWeight(endpoint(), 1).Attributes))
}
