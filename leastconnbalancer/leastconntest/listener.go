package leastconntest

import (
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/interop/grpc_testing"
)

// connCounts counts the TCP connections of a node.
type connCounts struct {
	accepted atomic.Int64
	open     atomic.Int64
}

// portListener accepts the connections of a node's port and hands each to the server of the moment, so that servers can take
// turns while the port stays open.
type portListener struct {
	listener net.Listener
	counts   *connCounts
	limits   *streamLimits
	done     chan struct{} // closed when the accept loop has ended

	mu sync.Mutex // held while a connection is handed over
	to *serverListener
}

func newPortListener(listener net.Listener, counts *connCounts, limits *streamLimits, to *serverListener) *portListener {
	f := &portListener{listener: listener, counts: counts, limits: limits, done: make(chan struct{}), to: to}
	go f.accept()
	return f
}

// direct sends connections accepted from now on to another server. It comes before the old one closes.
func (f *portListener) direct(to *serverListener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to = to
}

// close closes the port and waits until no connection is in hand.
func (f *portListener) close() {
	f.direct(nil)
	f.listener.Close()
	<-f.done
}

func (f *portListener) accept() {
	defer close(f.done)
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.deliver(conn)
	}
}

// deliver counts a connection and hands it over in one step, so that no server is succeeded while a connection that counts
// is on its way to it. It would go to the successor, which has nothing to tell it.
func (f *portListener) deliver(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.accepted.Add(1)
	f.counts.open.Add(1)
	limited := f.limits.add(&countedConn{Conn: conn, open: &f.counts.open})
	if f.to == nil {
		limited.Close()
		return
	}
	f.to.conns <- limited // its server takes it, for it runs until it has a successor
}

// countedConn counts itself out when it is closed.
type countedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

// Close closes the connection.
func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// serverListener is the listener of one grpc.Server: closing it leaves the port open.
type serverListener struct {
	addr   serverAddr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newServerListener(addr string) *serverListener {
	return &serverListener{addr: serverAddr(addr), conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for the next connection that the port hands over.
func (in *serverListener) Accept() (net.Conn, error) {
	select {
	case conn := <-in.conns:
		return conn, nil
	case <-in.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (in *serverListener) Close() error {
	in.once.Do(func() { close(in.closed) })
	return nil
}

// Addr is the address of the port.
func (in *serverListener) Addr() net.Addr { return in.addr }

type serverAddr string

func (serverAddr) Network() string  { return "tcp" }
func (a serverAddr) String() string { return string(a) }

// runningServer is one grpc.Server of a node. A node replaces it to send a GOAWAY, since a grpc.Server can do that only by
// going out of service.
type runningServer struct {
	server   *grpc.Server
	listener *serverListener
	served   chan struct{} // closed when Serve has returned
}

func (n *Node) newServer() *runningServer {
	options := []grpc.ServerOption{
		// Stop has to mean that no handler runs any more.
		grpc.WaitForHandlers(true),
		grpc.ChainUnaryInterceptor(n.interceptUnary),
		grpc.ChainStreamInterceptor(n.interceptStream),
	}
	g := &runningServer{
		server:   grpc.NewServer(append(options, n.opts.ServerOptions...)...),
		listener: newServerListener(n.opts.Addr),
		served:   make(chan struct{}),
	}
	grpc_testing.RegisterTestServiceServer(g.server, service{node: n})
	grpc_health_v1.RegisterHealthServer(g.server, n.health)
	if n.opts.Register != nil {
		n.opts.Register(g.server)
	}
	go func() {
		defer close(g.served)
		// Serve ends when the server is stopped; there is nothing to learn from its error.
		_ = g.server.Serve(g.listener)
	}()
	return g
}
