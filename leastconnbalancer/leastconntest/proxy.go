package leastconntest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/resolver"
)

// Direction is one of the two ways that bytes go through a Proxy.
type Direction int

// The directions, named as gRPC names the ends.
const (
	ClientToServer Direction = iota
	ServerToClient
	directions // how many there are
)

// String says from where to where.
func (d Direction) String() string {
	switch d {
	case ClientToServer:
		return "client to server"
	case ServerToClient:
		return "server to client"
	default:
		return "unknown"
	}
}

// Proxy forwards TCP connections on loopback to a server and spoils them as networks do. Faults hold for the connections
// that are open and for new ones, until they are taken back, and may be combined. It knows no protocol but TCP. Of each
// connection it keeps at most 64 writes, or 2 MiB, in a direction, which then fills up. All methods may be called by
// several goroutines at once.
type Proxy struct {
	listener net.Listener
	ctx      context.Context // ends with Close
	end      context.CancelFunc
	running  sync.WaitGroup // the accept loop and all that serves a connection
	bytes    [directions]atomic.Int64

	mu       sync.Mutex
	target   string
	faults   faults
	changed  chan struct{} // closed when faults are replaced by others
	conns    map[*proxiedConn]struct{}
	accepted int
	closed   bool
}

// faults is what a proxy does to connections.
type faults struct {
	silent [directions]bool
	refuse bool
	delay  time.Duration
	rate   int // bytes per second, 0 without a limit
}

// StartProxy listens on a free port of 127.0.0.1 and forwards each connection to target, an IP address and port on
// loopback; anything else is refused. Close the proxy when done with it, before the server: a grpc.Server that stops
// waits for connections whose handshake hangs.
func StartProxy(target string) (*Proxy, error) {
	if err := onLoopback(target); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("leastconntest: proxy: %w", err)
	}
	p := &Proxy{listener: listener, target: target, changed: make(chan struct{}), conns: map[*proxiedConn]struct{}{}}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.running.Go(p.accept)
	return p, nil
}

func onLoopback(target string) error {
	addr, err := netip.ParseAddrPort(target)
	if err != nil {
		return fmt.Errorf("leastconntest: proxy: target %q is not an IP address and a port: %w", target, err)
	}
	if !addr.Addr().IsLoopback() || addr.Port() == 0 {
		return fmt.Errorf("leastconntest: proxy: target %q is no port on loopback", target)
	}
	return nil
}

// Addr is the address that the proxy listens on.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Endpoint is the proxy as a resolver lists it: one endpoint with one address.
func (p *Proxy) Endpoint() resolver.Endpoint {
	return resolver.Endpoint{Addresses: []resolver.Address{{Addr: p.Addr()}}}
}

// SetTarget sends connections that are accepted from now on to another address on loopback. With an error nothing changes.
func (p *Proxy) SetTarget(target string) error {
	if err := onLoopback(target); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	return nil
}

// Reset breaks the connections that are open now with a TCP reset to both ends.
func (p *Proxy) Reset() {
	p.mu.Lock()
	open := make([]*proxiedConn, 0, len(p.conns))
	for c := range p.conns {
		open = append(open, c)
	}
	p.mu.Unlock()
	for _, c := range open {
		c.reset()
	}
}

// Blackhole says whether nothing gets through in either direction: no byte, no end of a connection, and no new
// connection to the server, though clients can connect. What is sent waits, as TCP has it wait for lost packets, and
// goes on when the blackhole ends.
func (p *Proxy) Blackhole(on bool) {
	p.change(func(f *faults) { f.silent = [directions]bool{on, on} })
}

// HalfOpen is Blackhole for one direction.
func (p *Proxy) HalfOpen(silent Direction, on bool) {
	p.change(func(f *faults) { f.silent[silent] = on })
}

// Refuse says whether new connections are reset as soon as they are accepted.
func (p *Proxy) Refuse(on bool) { p.change(func(f *faults) { f.refuse = on }) }

// SetDelay lets what is sent arrive later by delay, in both directions; 0 ends that.
func (p *Proxy) SetDelay(delay time.Duration) { p.change(func(f *faults) { f.delay = delay }) }

// SetRate limits each connection to so many bytes per second in each direction; 0 or less ends that.
func (p *Proxy) SetRate(bytesPerSecond int) {
	p.change(func(f *faults) { f.rate = max(bytesPerSecond, 0) })
}

// Heal takes back all faults. Connections that are broken stay so.
func (p *Proxy) Heal() { p.change(func(f *faults) { *f = faults{} }) }

// Conns is how many connections are open now, those included that the client has closed while nothing gets through.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Accepted is how many connections have been accepted so far, those that were refused included.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Bytes is how many bytes the proxy has received so far that go in a direction, those that wait to be passed on included.
func (p *Proxy) Bytes(d Direction) int64 { return p.bytes[d].Load() }

// Close closes the port, resets all connections and waits for everything the proxy started. Further calls do nothing.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.end()
	p.listener.Close()
	p.Reset()
	p.running.Wait()
}

// change replaces the faults and tells all connections.
func (p *Proxy) change(edit func(*faults)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	edit(&p.faults)
	close(p.changed)
	p.changed = make(chan struct{})
}

// currentFaults returns the faults, and a channel that is closed when they change.
func (p *Proxy) currentFaults() (faults, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults, p.changed
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		switch {
		case err == nil:
			p.handle(conn.(*net.TCPConn))
		case errors.Is(err, net.ErrClosed):
			return
		default: // such as too many open files
			select {
			case <-time.After(pollInterval):
			case <-p.ctx.Done():
				return
			}
		}
	}
}

// handle serves a connection, or refuses it.
func (p *Proxy) handle(client *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted++
	if p.faults.refuse || p.closed {
		abort(client)
		return
	}
	c := newProxiedConn(p, p.target, client)
	p.conns[c] = struct{}{}
	p.running.Go(func() {
		c.serve()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, c)
	})
}
