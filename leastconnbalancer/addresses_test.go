package leastconnbalancer_test

import (
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

func init() { balancer.Register(addressesOnly{}) }

// addressesOnly builds a parent of the policy that passes on addresses and no
// endpoints.
type addressesOnly struct{}

func (addressesOnly) Name() string { return "addresses_only_parent" }

func (addressesOnly) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return addressesOnlyBalancer{balancer.Get(leastconnbalancer.Name).Build(cc, opts)}
}

// addressesOnlyBalancer embeds the child to intercept its updates.
type addressesOnlyBalancer struct{ balancer.Balancer }

func (b addressesOnlyBalancer) UpdateClientConnState(s balancer.ClientConnState) error {
	eps := s.ResolverState.Endpoints
	s.ResolverState.Endpoints, s.ResolverState.Addresses = nil, make([]resolver.Address, len(eps))
	for i, ep := range eps {
		s.ResolverState.Addresses[i] = ep.Addresses[0]
		//lint:ignore SA1019 a state without endpoints has no other place
		s.ResolverState.Addresses[i].BalancerAttributes = ep.Attributes
	}
	return b.Balancer.UpdateClientConnState(s)
}
