package leastconntest

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/resolver"
)

// Options says how a Node is to behave. The zero value is a healthy node on a free port.
type Options struct {
	// Name is what the node calls itself in the NodeHeader of its answers. Default: its address.
	Name string
	// Addr is the TCP address to listen on. Default: a free port of 127.0.0.1.
	Addr string
	// ServerOptions are passed to every grpc.Server of the node, for instance keepalive.ServerParameters or
	// grpc.MaxConcurrentStreams.
	ServerOptions []grpc.ServerOption
	// Delay is how long a unary RPC takes. Default: none. See SetDelay.
	Delay time.Duration
	// Fail ends every RPC at once with this code. Default: codes.OK, which does not. See SetFail.
	Fail codes.Code
	// Register registers further services at every grpc.Server of the node. Default: none.
	Register func(grpc.ServiceRegistrar)
	// Panic lets every RPC handler panic. See SetPanic.
	Panic bool
}

// Node is a gRPC server on loopback that counts connections and RPCs. Its counts go on over GoAway, Stop and Restart.
// All methods may be called by several goroutines at once.
type Node struct {
	opts   Options // as given, with Name and Addr filled in
	health *health.Server
	conns  connCounts
	rpcs   rpcCounts
	behaviour
	streamLimits streamLimits

	// background counts what Close waits for: servers draining after GoAway and the receiving halves of handlers.
	background sync.WaitGroup

	// mu guards which servers run. It is never held while a server stops.
	mu       sync.Mutex
	port     *portListener    // nil while stopped
	current  *runningServer   // gets every new connection; nil while stopped
	draining []*runningServer // told to go away and still carrying RPCs
	reserved func()           // gives back the port of a stopped node; nil while it runs
	closed   bool
}

// StartNode listens and serves. Close the node when done with it.
func StartNode(opts Options) (*Node, error) {
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	n := &Node{opts: opts, health: health.NewServer()}
	n.behaviour.init(opts)
	if err := n.serve(); err != nil {
		return nil, err
	}
	if n.opts.Name == "" {
		n.opts.Name = n.opts.Addr
	}
	return n, nil
}

// StartNodes starts a node with opts for each name, or none at all if one of them cannot start.
func StartNodes(opts Options, names ...string) ([]*Node, error) {
	nodes := make([]*Node, 0, len(names))
	for _, name := range names {
		opts.Name = name
		n, err := StartNode(opts)
		if err != nil {
			CloseNodes(nodes...)
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// CloseNodes closes each of nodes.
func CloseNodes(nodes ...*Node) {
	for _, n := range nodes {
		n.Close()
	}
}

// Endpoints lists one endpoint for each of nodes, in that order.
func Endpoints(nodes ...*Node) []resolver.Endpoint {
	endpoints := make([]resolver.Endpoint, len(nodes))
	for i, n := range nodes {
		endpoints[i] = n.Endpoint()
	}
	return endpoints
}

// Addr is the address the node listens on, or listened on before it was stopped.
func (n *Node) Addr() string { return n.opts.Addr }

// Name is what the node calls itself.
func (n *Node) Name() string { return n.opts.Name }

// Endpoint is the node as a resolver lists it: one endpoint with one address.
func (n *Node) Endpoint() resolver.Endpoint {
	return resolver.Endpoint{Addresses: []resolver.Address{{Addr: n.opts.Addr}}}
}

// GoAway sends a GOAWAY on every connection of the node, as a server does that ages its connections, and returns
// without waiting for clients to notice. RPCs under way live on; new connections are accepted on the same address all
// the time. A stopped node has no connections, so nothing happens.
func (n *Node) GoAway() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.current == nil {
		return
	}
	old := n.current
	n.current = n.newServer()
	n.port.direct(n.current.listener)
	n.draining = append(n.draining, old)
	n.background.Go(func() {
		old.server.GracefulStop()
		n.drained(old)
	})
}

func (n *Node) drained(old *runningServer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.draining = slices.DeleteFunc(n.draining, func(g *runningServer) bool { return g == old })
}

// Stop ends the node the hard way: its port refuses connections, its connections and the RPCs on them break, those
// still draining after GoAway included. It returns when all handlers have returned. Restart brings the node back; until
// then, on Linux, the system gives the port to nobody who asks for just any.
func (n *Node) Stop() {
	n.mu.Lock()
	port, servers := n.port, n.draining
	if n.current != nil {
		servers = append(slices.Clone(servers), n.current)
	}
	n.port, n.current = nil, nil
	n.mu.Unlock()

	if port != nil {
		port.close()
		n.reserve()
	}
	for _, g := range servers {
		g.server.Stop()
		<-g.served
	}
}

// GracefulStop is Stop for a node that lets its RPCs end: its port refuses connections, its clients get a GOAWAY, and it
// returns when the last RPC has ended, or Stop has been called.
func (n *Node) GracefulStop() {
	n.mu.Lock()
	port := n.port
	if n.current != nil {
		n.draining = append(n.draining, n.current)
	}
	servers := slices.Clone(n.draining)
	n.port, n.current = nil, nil
	n.mu.Unlock()

	if port != nil {
		port.close()
		n.reserve()
	}
	for _, g := range servers {
		g.server.GracefulStop()
		<-g.served
		n.drained(g)
	}
}

// reserve keeps the port of a stopped node until serve or Close.
func (n *Node) reserve() {
	release := reservePort(n.opts.Addr)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.port != nil || n.closed || n.reserved != nil {
		release()
		return
	}
	n.reserved = release
}

// Restart stops the node if it runs and listens again on the same address.
func (n *Node) Restart() error {
	n.Stop()
	return n.serve()
}

// Close stops the node for good and waits for everything it started. Further calls do nothing.
func (n *Node) Close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.Stop()
	n.mu.Lock()
	if n.reserved != nil {
		n.reserved()
		n.reserved = nil
	}
	n.mu.Unlock()
	n.health.Shutdown()
	n.background.Wait()
}

func (n *Node) serve() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return errors.New("leastconntest: node is closed")
	case n.port != nil:
		return fmt.Errorf("leastconntest: node %s runs already", n.opts.Name)
	}
	listener, err := net.Listen("tcp", n.opts.Addr)
	if err != nil {
		return fmt.Errorf("leastconntest: node %s: %w", n.opts.Name, err)
	}
	if n.reserved != nil {
		n.reserved()
		n.reserved = nil
	}
	if addr := listener.Addr().String(); n.opts.Addr != addr { // the first time: later it may be read at any time
		n.opts.Addr = addr
	}
	n.current = n.newServer()
	n.port = newPortListener(listener, &n.conns, &n.streamLimits, n.current.listener)
	return nil
}
