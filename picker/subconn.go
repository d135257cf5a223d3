package picker

import "google.golang.org/grpc/balancer"

// SubConn is a SubConn of a child's policy that the balancer intercepts. The child
// knows it as it is; what the picker hands to gRPC is what the balancer's own ClientConn
// has made, or the parent that wraps it.
type SubConn struct {
	balancer.SubConn
	grpc balancer.SubConn
}

// Intercept returns a SubConn that is child to whoever picks it, and grpc to gRPC.
func Intercept(child, grpc balancer.SubConn) *SubConn { return &SubConn{child, grpc} }
