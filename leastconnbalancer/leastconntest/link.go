package leastconntest

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// link is a connection through a proxy: the client's and the one to the server.
type link struct {
	proxy  *Proxy
	target string
	client *net.TCPConn
	ctx    context.Context // ends with the link
	end    context.CancelFunc

	mu     sync.Mutex
	server *net.TCPConn // nil before it is dialled
}

// packet is what a link has received at a time: bytes, and what ends them.
type packet struct {
	data []byte
	err  error
	at   time.Time
}

const (
	packetSize = 32 << 10 // at most
	underWay   = 64       // packets in a direction of a link
)

func newLink(p *Proxy, target string, client *net.TCPConn) *link {
	l := &link{proxy: p, target: target, client: client}
	l.ctx, l.end = context.WithCancel(p.ctx)
	return l
}

// serve returns when both connections are closed.
func (l *link) serve() {
	defer l.close()
	if !l.pass(ClientToServer, time.Now()) {
		return
	}
	server, err := l.dial()
	if err != nil {
		l.reset()
		return
	}
	var pumps sync.WaitGroup
	for d, ends := range [directions][2]*net.TCPConn{{l.client, server}, {server, l.client}} {
		way := make(chan packet, underWay)
		pumps.Go(func() { l.receive(Direction(d), ends[0], way) })
		pumps.Go(func() { l.forward(Direction(d), way, ends[1]) })
	}
	pumps.Wait()
}

// dial connects to the server. It does not heed the context: a connection given up for that would not be reset.
func (l *link) dial() (*net.TCPConn, error) {
	conn, err := net.DialTimeout("tcp", l.target, time.Second)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = conn.(*net.TCPConn)
	if err := l.ctx.Err(); err != nil { // reset did not see the connection
		abort(l.server)
		return nil, err
	}
	return l.server, nil
}

// receive reads one direction to its end.
func (l *link) receive(d Direction, from *net.TCPConn, way chan<- packet) {
	buf := make([]byte, packetSize)
	for {
		n, err := from.Read(buf)
		l.proxy.bytes[d].Add(int64(n))
		select {
		case way <- packet{slices.Clone(buf[:n]), err, time.Now()}:
		case <-l.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// forward writes one direction to its end. A half-close is passed on as such, a broken connection breaks the other one.
func (l *link) forward(d Direction, way <-chan packet, to *net.TCPConn) {
	for {
		var p packet
		select {
		case p = <-way:
		case <-l.ctx.Done():
			return
		}
		if !l.send(d, to, p) || !l.pass(d, p.at) {
			return
		}
		switch {
		case p.err == io.EOF:
			_ = to.CloseWrite()
			return
		case p.err != nil:
			l.reset()
			return
		}
	}
}

// send writes what was received, when and as fast as the faults allow. It reports false if the link is over.
func (l *link) send(d Direction, to *net.TCPConn, p packet) bool {
	for data := p.data; len(data) > 0; {
		if !l.pass(d, p.at) {
			return false
		}
		n := l.piece(len(data))
		if _, err := to.Write(data[:n]); err != nil {
			l.reset()
			return false
		}
		if !l.wait(time.Now(), func(f faults) (time.Duration, bool) { return f.sending(n), true }) {
			return false
		}
		data = data[n:]
	}
	return true
}

// piece is how much of so many bytes is sent at once: on a slow link little, so that it flows.
func (l *link) piece(all int) int {
	f, _ := l.proxy.now()
	if f.rate == 0 {
		return all
	}
	return max(1, min(all, f.rate/100))
}

// sending is how long n bytes take.
func (f faults) sending(n int) time.Duration {
	if f.rate == 0 {
		return 0
	}
	return time.Duration(n) * time.Second / time.Duration(f.rate)
}

// pass waits until what was received at a time may go on. It reports false if the link is over.
func (l *link) pass(d Direction, received time.Time) bool {
	return l.wait(received, func(f faults) (time.Duration, bool) { return f.delay, !f.silent[d] })
}

// wait waits until the faults of the moment allow to go on, and so long after start as they say. It reports false if
// the link is over.
func (l *link) wait(start time.Time, when func(faults) (after time.Duration, ok bool)) bool {
	for {
		f, changed := l.proxy.now()
		after, ok := when(f)
		left := after - time.Since(start)
		if ok && left <= 0 {
			return l.ctx.Err() == nil
		}
		var over <-chan time.Time
		if ok {
			over = time.After(left)
		}
		select {
		case <-over:
		case <-changed:
		case <-l.ctx.Done():
			return false
		}
	}
}

// reset breaks both connections.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
	abort(l.client)
	if l.server != nil {
		abort(l.server)
	}
}

// close closes both connections as what was sent last is delivered.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
	l.client.Close()
	if l.server != nil {
		l.server.Close()
	}
}

// abort closes a connection with a TCP reset.
func abort(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	conn.Close()
}
