// Package leastconnbalancer is the least_conn load balancing policy for
// grpc-go. Importing it registers the policy; a service config selects it:
//
//	import _ "github.com/leastconn/grpc-leastconn/leastconnbalancer"
//
//	conn, err := grpc.NewClient("dns:///api.example.com:443",
//		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"least_conn":{}}]}`))
//
// Each RPC goes to a ready endpoint with the lowest (in_flight + 1) / weight,
// exactly; among equals they take turns. The in-flight counts belong to the
// endpoints and are shared by all channels of the process that have the same
// resource key (see [Config]): they outlive resolver updates, reconnects,
// endpoints that leave and return, and the balancer itself, for as long as an
// RPC is in flight. An RPC is in flight from its pick until gRPC reports its
// end, which for a stream is when the application has read its final status,
// cancels its context, or closes the channel.
//
// The policy keeps one connection to each endpoint of the resolver's list.
// Endpoints listed twice count once. Weights, identities and the resource key
// can be set by the resolver: see package resolver of this module.
package leastconnbalancer
