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

// maxInFlight is a cap and whether there is one.
type maxInFlight struct {
	limit uint32
	ok    bool
}

// facts are all that can be said of an endpoint.
type facts struct {
	weight, priority uint32
	max              maxInFlight
	id               string
}

func factsOf(ep grpcresolver.Endpoint) facts {
	limit, ok := resolver.MaxInFlight(ep)
	return facts{resolver.Weight(ep), resolver.Priority(ep), maxInFlight{limit, ok}, resolver.ID(ep)}
}

// setAll sets each fact.
func setAll(ep grpcresolver.Endpoint, f facts) grpcresolver.Endpoint {
	ep = resolver.SetPriority(resolver.SetWeight(ep, f.weight), f.priority)
	return resolver.SetID(resolver.SetMaxInFlight(ep, f.max.limit), f.id)
}

func TestEndpointAttributes(t *testing.T) {
	none := facts{weight: 1}
	some := facts{7, 2, maxInFlight{3, true}, "u"}
	grpcs := func(ep grpcresolver.Endpoint, w uint32) grpcresolver.Endpoint {
		return weight.Set(ep, weight.EndpointInfo{Weight: w})
	}
	theirs := setAll(endpoint(), some).Attributes
	for name, tc := range map[string]struct {
		endpoint grpcresolver.Endpoint
		want     facts
	}{
		"none":                     {endpoint(), none},
		"none, without attributes": {grpcresolver.Endpoint{}, none},
		"all":                      {setAll(endpoint(), some), some},
		"all, on nothing":          {setAll(grpcresolver.Endpoint{}, some), some},
		"the last holds":           {setAll(setAll(endpoint(), facts{9, 9, maxInFlight{9, true}, "v"}), some), some},
		"zero is said, too":        {setAll(setAll(endpoint(), some), facts{}), facts{max: maxInFlight{ok: true}}},
		"the highest": {
			setAll(endpoint(), facts{math.MaxUint32, math.MaxUint32, maxInFlight{math.MaxUint32, true}, "u"}),
			facts{math.MaxUint32, math.MaxUint32, maxInFlight{math.MaxUint32, true}, "u"},
		},
		"weight alone":             {resolver.SetWeight(endpoint(), 7), facts{weight: 7}},
		"priority alone":           {resolver.SetPriority(endpoint(), 7), facts{weight: 1, priority: 7}},
		"cap alone":                {resolver.SetMaxInFlight(endpoint(), 7), facts{weight: 1, max: maxInFlight{7, true}}},
		"id alone":                 {resolver.SetID(endpoint(), "7"), facts{weight: 1, id: "7"}},
		"grpc's weight":            {grpcs(endpoint(), 9), facts{weight: 9}},
		"grpc's weight 0 is none":  {grpcs(endpoint(), 0), none},
		"ours before grpc's":       {resolver.SetWeight(grpcs(endpoint(), 9), 7), facts{weight: 7}},
		"our 0 before grpc's":      {resolver.SetWeight(grpcs(endpoint(), 9), 0), facts{}},
		"ours, then grpc's":        {grpcs(resolver.SetWeight(endpoint(), 7), 9), facts{weight: 7}},
		"those of an address only": {grpcresolver.Endpoint{Addresses: []grpcresolver.Address{{Addr: "10.0.0.1:443", Attributes: theirs}}}, none},
		"the balancer's of an address only": {
			// Inside an endpoint it must not be read.
			grpcresolver.Endpoint{Addresses: []grpcresolver.Address{{Addr: "10.0.0.1:443", BalancerAttributes: theirs}}}, none,
		},
	} {
		require.Equal(t, tc.want, factsOf(tc.endpoint), name)
	}
	require.Equal(t, uint32(1<<31), uint32(resolver.MaxWeight))
	require.Equal(t, uint32(1<<31-1), uint32(resolver.MaxMaxInFlight))
}

// A setter leaves its argument as it is, and what others have set.
func TestSettersCopy(t *testing.T) {
	some := facts{7, 2, maxInFlight{3, true}, "u"}
	ep := setAll(endpoint(), some)
	setAll(ep, facts{8, 8, maxInFlight{8, true}, "v"})
	require.Equal(t, some, factsOf(ep))
	require.Equal(t, "kept", ep.Attributes.Value("theirs"))
	require.Equal(t, endpoint().Addresses, ep.Addresses)
	require.Equal(t, "kept", endpoint().Attributes.Value("theirs"))
}

// Policies compare attributes to find out what is new.
func TestEqualFactsAreEqualAttributes(t *testing.T) {
	for name, set := range map[string]func(uint32) grpcresolver.Endpoint{
		"weight":      func(v uint32) grpcresolver.Endpoint { return resolver.SetWeight(endpoint(), v) },
		"priority":    func(v uint32) grpcresolver.Endpoint { return resolver.SetPriority(endpoint(), v) },
		"maxInFlight": func(v uint32) grpcresolver.Endpoint { return resolver.SetMaxInFlight(endpoint(), v) },
		"id":          func(v uint32) grpcresolver.Endpoint { return resolver.SetID(endpoint(), string(rune('a'+v))) },
	} {
		require.True(t, set(1).Attributes.Equal(set(1).Attributes), name)
		require.False(t, set(1).Attributes.Equal(set(2).Attributes), name)
		require.False(t, set(0).Attributes.Equal(endpoint().Attributes), name)
	}
	require.False(t, resolver.SetPriority(endpoint(), 1).Attributes.Equal(resolver.SetWeight(endpoint(), 1).Attributes))
}

func TestResourceKey(t *testing.T) {
	s := grpcresolver.State{Attributes: attributes.New("theirs", "kept")}
	for _, without := range []grpcresolver.State{{}, s} {
		require.Empty(t, resolver.ResourceKey(without))
		named := resolver.SetResourceKey(without, "chat")
		require.Equal(t, "chat", resolver.ResourceKey(named))
		require.Empty(t, resolver.ResourceKey(without), "the argument is as it was")
		require.True(t, named.Attributes.Equal(resolver.SetResourceKey(without, "chat").Attributes))
		require.False(t, named.Attributes.Equal(resolver.SetResourceKey(without, "web").Attributes))
		require.Equal(t, "web", resolver.ResourceKey(resolver.SetResourceKey(named, "web")))
		require.Empty(t, resolver.ResourceKey(resolver.SetResourceKey(named, "")))
	}
	require.Equal(t, "kept", resolver.SetResourceKey(s, "chat").Attributes.Value("theirs"))
}
