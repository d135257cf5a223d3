package leastconntest

import (
	"net"
	"sync"
	"sync/atomic"
)

// connCounts counts the TCP connections of a node.
type connCounts struct {
	accepted atomic.Int64
	open     atomic.Int64
}

// front accepts the connections of a node's port and hands each to the inlet of the moment, so that servers can take
// turns while the port stays open.
type front struct {
	listener net.Listener
	counts   *connCounts
	done     chan struct{} // closed when the accept loop has ended

	mu sync.Mutex
	to *inlet
}

func newFront(listener net.Listener, counts *connCounts, to *inlet) *front {
	f := &front{listener: listener, counts: counts, done: make(chan struct{}), to: to}
	go f.accept()
	return f
}

// direct sends connections accepted from now on to another inlet. It comes before the old inlet closes.
func (f *front) direct(to *inlet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to = to
}

// close closes the port and waits until no connection is in hand.
func (f *front) close() {
	f.direct(nil)
	f.listener.Close()
	<-f.done
}

func (f *front) accept() {
	defer close(f.done)
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.counts.accepted.Add(1)
		f.counts.open.Add(1)
		counted := &countedConn{Conn: conn, open: &f.counts.open}
		if !f.deliver(counted) {
			counted.Close()
		}
	}
}

// deliver reports false if the node has been stopped meanwhile.
func (f *front) deliver(conn net.Conn) bool {
	for {
		f.mu.Lock()
		to := f.to
		f.mu.Unlock()
		if to == nil {
			return false
		}
		select {
		case to.conns <- conn:
			return true
		case <-to.closed:
			// Its server was told to go away between the two steps, so f.to has its successor.
		}
	}
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

// inlet is the listener of one grpc.Server: closing it leaves the port open.
type inlet struct {
	addr   inletAddr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newInlet(addr string) *inlet {
	return &inlet{addr: inletAddr(addr), conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for the next connection that the front hands over.
func (in *inlet) Accept() (net.Conn, error) {
	select {
	case conn := <-in.conns:
		return conn, nil
	case <-in.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (in *inlet) Close() error {
	in.once.Do(func() { close(in.closed) })
	return nil
}

// Addr is the address of the port.
func (in *inlet) Addr() net.Addr { return in.addr }

type inletAddr string

func (inletAddr) Network() string  { return "tcp" }
func (a inletAddr) String() string { return string(a) }
