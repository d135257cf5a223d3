// Package testserver runs servers of gRPC's interop test service, for the programs of interop.
package testserver

import (
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/interop"
	"google.golang.org/grpc/interop/grpc_testing"
)

// Options says which servers to start.
type Options struct {
	// Host is what all of them listen on, a name or an IP address of this machine.
	Host string
	// Port is the port of the first server; the others have the next ones. With 0 each gets a free one.
	Port int
	// Count is how many there are.
	Count int
	// Certificate makes them speak TLS. With nil they speak plaintext.
	Certificate *tls.Certificate
}

// Group is a number of servers that live together.
type Group struct {
	servers []*grpc.Server
	addrs   []string
	serving sync.WaitGroup
}

// Start starts the servers, or none with an error. They serve until Close.
func Start(o Options) (*Group, error) {
	listeners, err := listen(o)
	if err != nil {
		return nil, err
	}
	// When Close returns, no handler runs any more.
	opts := []grpc.ServerOption{grpc.WaitForHandlers(true)}
	if o.Certificate != nil {
		opts = append(opts, grpc.Creds(credentials.NewServerTLSFromCert(o.Certificate)))
	}
	g := &Group{}
	for _, l := range listeners {
		s := grpc.NewServer(opts...)
		grpc_testing.RegisterTestServiceServer(s, interop.NewTestServer())
		g.servers = append(g.servers, s)
		g.addrs = append(g.addrs, l.Addr().String())
		g.serving.Go(func() { _ = s.Serve(l) }) // it ends with Close, and its error says no more
	}
	return g, nil
}

func listen(o Options) ([]net.Listener, error) {
	var all []net.Listener
	for i := range o.Count {
		port := o.Port
		if port != 0 {
			port += i
		}
		l, err := net.Listen("tcp", net.JoinHostPort(o.Host, strconv.Itoa(port)))
		if err != nil {
			for _, l := range all {
				l.Close()
			}
			return nil, fmt.Errorf("server %d of %d: %w", i+1, o.Count, err)
		}
		all = append(all, l)
	}
	return all, nil
}

// Addrs are the addresses that the servers listen on.
func (g *Group) Addrs() []string { return g.addrs }

// Close sends GOAWAY on all connections, refuses new ones, lets the RPCs that are under way go on for grace and then breaks
// those that are left. When it returns, nothing of the servers runs any more.
func (g *Group) Close(grace time.Duration) {
	var closing sync.WaitGroup
	for _, s := range g.servers {
		closing.Go(func() {
			breaking := time.AfterFunc(grace, s.Stop)
			defer breaking.Stop()
			s.GracefulStop()
		})
	}
	closing.Wait()
	g.serving.Wait()
}
