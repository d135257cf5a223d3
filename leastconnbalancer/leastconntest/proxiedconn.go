package leastconntest

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// proxiedConn is a connection through a proxy: the client's and the one to the server.
type proxiedConn struct {
	proxy  *Proxy
	target string
	client *net.TCPConn
	ctx    context.Context // ends with the connection
	end    context.CancelFunc

	mu     sync.Mutex
	server *net.TCPConn // nil before it is dialled
}

// packet is what a connection has received at a time: bytes, and what ends them.
type packet struct {
	data []byte
	err  error
	at   time.Time
}

const (
	packetSize = 32 << 10 // at most
	underWay   = 64       // packets in a direction of a connection
)

func newProxiedConn(p *Proxy, target string, client *net.TCPConn) *proxiedConn {
	c := &proxiedConn{proxy: p, target: target, client: client}
	c.ctx, c.end = context.WithCancel(p.ctx)
	return c
}

// serve returns when both connections are closed.
func (c *proxiedConn) serve() {
	defer c.close()
	if !c.pass(ClientToServer, time.Now()) {
		return
	}
	server, err := c.dial()
	if err != nil {
		c.reset()
		return
	}
	var pumps sync.WaitGroup
	for d, ends := range [directions][2]*net.TCPConn{{c.client, server}, {server, c.client}} {
		way := make(chan packet, underWay)
		pumps.Go(func() { c.receive(Direction(d), ends[0], way) })
		pumps.Go(func() { c.forward(Direction(d), way, ends[1]) })
	}
	pumps.Wait()
}

// dial connects to the server. It does not heed the context: a connection given up for that would not be reset.
func (c *proxiedConn) dial() (*net.TCPConn, error) {
	conn, err := net.DialTimeout("tcp", c.target, time.Second)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = conn.(*net.TCPConn)
	if err := c.ctx.Err(); err != nil { // reset did not see the connection
		abort(c.server)
		return nil, err
	}
	return c.server, nil
}

// receive reads one direction to its end.
func (c *proxiedConn) receive(d Direction, from *net.TCPConn, way chan<- packet) {
	buf := make([]byte, packetSize)
	for {
		n, err := from.Read(buf)
		c.proxy.bytes[d].Add(int64(n))
		select {
		case way <- packet{slices.Clone(buf[:n]), err, time.Now()}:
		case <-c.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// forward writes one direction to its end. A half-close is passed on as such, a broken connection breaks the other one.
func (c *proxiedConn) forward(d Direction, way <-chan packet, to *net.TCPConn) {
	for {
		var p packet
		select {
		case p = <-way:
		case <-c.ctx.Done():
			return
		}
		if !c.send(d, to, p) || !c.pass(d, p.at) {
			return
		}
		switch {
		case p.err == io.EOF:
			_ = to.CloseWrite()
			return
		case p.err != nil:
			c.reset()
			return
		}
	}
}

// send writes what was received, when and as fast as the faults allow. It reports false if the connection is over.
func (c *proxiedConn) send(d Direction, to *net.TCPConn, p packet) bool {
	for data := p.data; len(data) > 0; {
		if !c.pass(d, p.at) {
			return false
		}
		n := c.piece(len(data))
		if _, err := to.Write(data[:n]); err != nil {
			c.reset()
			return false
		}
		if !c.wait(time.Now(), func(f faults) (time.Duration, bool) { return f.sending(n), true }) {
			return false
		}
		data = data[n:]
	}
	return true
}

// piece is how much of so many bytes is sent at once: on a slow one little, so that it flows.
func (c *proxiedConn) piece(all int) int {
	f, _ := c.proxy.currentFaults()
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

// pass waits until what was received at a time may go on. It reports false if the connection is over.
func (c *proxiedConn) pass(d Direction, received time.Time) bool {
	return c.wait(received, func(f faults) (time.Duration, bool) { return f.delay, !f.silent[d] })
}

// wait waits until the faults of the moment allow to go on, and so long after start as they say. It reports false if
// the connection is over.
func (c *proxiedConn) wait(start time.Time, when func(faults) (after time.Duration, ok bool)) bool {
	for {
		f, changed := c.proxy.currentFaults()
		after, ok := when(f)
		left := after - time.Since(start)
		if ok && left <= 0 {
			return c.ctx.Err() == nil
		}
		var over <-chan time.Time
		if ok {
			over = time.After(left)
		}
		select {
		case <-over:
		case <-changed:
		case <-c.ctx.Done():
			return false
		}
	}
}

// reset breaks both connections.
func (c *proxiedConn) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
	abort(c.client)
	if c.server != nil {
		abort(c.server)
	}
}

// close closes both connections as what was sent last is delivered.
func (c *proxiedConn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
	c.client.Close()
	if c.server != nil {
		c.server.Close()
	}
}

// abort closes a connection with a TCP reset.
func abort(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	conn.Close()
}
