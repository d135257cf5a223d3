// Package resolver says what a name resolver can tell the least_conn policy
// about an endpoint and about the service it resolves. The facts travel as
// attributes of resolver.Endpoint and resolver.State, so any resolver can set
// them.
//
// All functions are pure and safe for concurrent use; setters return a copy
// with the attribute set and leave their argument as it is.
//
// A resolver that fills State.Addresses and not State.Endpoints can give the
// same facts in Address.BalancerAttributes: gRPC makes each such address an
// endpoint with these as its attributes. What Address.Attributes holds, or
// the BalancerAttributes of an address inside an endpoint, is never read.
package resolver
