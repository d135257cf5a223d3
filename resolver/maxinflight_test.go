package resolver_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/resolver"
)

func TestMaxInFlight(t *testing.T) {
	for _, ep := range []grpcresolver.Endpoint{{}, endpoint(), resolver.SetWeight(endpoint(), 7)} {
		limit, ok := resolver.MaxInFlight(ep)
		require.False(t, ok)
		require.Zero(t, limit)
	}
	for _, want := range []uint32{0, 1, resolver.MaxMaxInFlight, math.MaxUint32} {
		for _, ep := range []grpcresolver.Endpoint{{}, endpoint(), resolver.SetMaxInFlight(endpoint(), 5)} {
			limit, ok := resolver.MaxInFlight(resolver.SetMaxInFlight(ep, want))
			require.True(t, ok)
			require.Equal(t, want, limit)
		}
	}
	require.EqualValues(t, 1<<31-1, resolver.MaxMaxInFlight)
}

// A cap is a fact of its own: the others stay, and so does the argument.
func TestMaxInFlightIsAFactOfItsOwn(t *testing.T) {
	plain := resolver.SetID(resolver.SetWeight(endpoint(), 7), "u")
	ep := resolver.SetMaxInFlight(plain, 3)
	require.EqualValues(t, 7, resolver.Weight(ep))
	require.Equal(t, "u", resolver.ID(ep))
	require.Equal(t, "kept", ep.Attributes.Value("theirs"))
	_, ok := resolver.MaxInFlight(plain)
	require.False(t, ok)
	resolver.SetMaxInFlight(ep, 4)
	limit, _ := resolver.MaxInFlight(ep)
	require.EqualValues(t, 3, limit)

	require.True(t, ep.Attributes.Equal(resolver.SetMaxInFlight(plain, 3).Attributes))
	require.False(t, ep.Attributes.Equal(resolver.SetMaxInFlight(plain, 4).Attributes))
	require.False(t, ep.Attributes.Equal(plain.Attributes))
	require.False(t, resolver.SetMaxInFlight(plain, 0).Attributes.Equal(plain.Attributes), "0 is a cap lifted")
}
