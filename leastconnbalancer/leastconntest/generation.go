package leastconntest

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/interop/grpc_testing"
)

// generation is one grpc.Server of a node. A node replaces it to send a GOAWAY, since a grpc.Server can do that only by
// going out of service.
type generation struct {
	server *grpc.Server
	inlet  *inlet
	served chan struct{} // closed when Serve has returned
}

func (n *Node) newGeneration() *generation {
	options := []grpc.ServerOption{
		// Stop has to mean that no handler runs any more.
		grpc.WaitForHandlers(true),
		grpc.ChainUnaryInterceptor(n.interceptUnary),
		grpc.ChainStreamInterceptor(n.interceptStream),
	}
	g := &generation{
		server: grpc.NewServer(append(options, n.opts.ServerOptions...)...),
		inlet:  newInlet(n.opts.Addr),
		served: make(chan struct{}),
	}
	grpc_testing.RegisterTestServiceServer(g.server, service{node: n})
	grpc_health_v1.RegisterHealthServer(g.server, n.health)
	go func() {
		defer close(g.served)
		// Serve ends when the server is stopped; there is nothing to learn from its error.
		_ = g.server.Serve(g.inlet)
	}()
	return g
}
