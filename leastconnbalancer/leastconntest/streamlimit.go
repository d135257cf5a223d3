package leastconntest

import (
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
)

// streamLimits is what a node tells on its connections of how many streams a client may have on one.
type streamLimits struct {
	mu    sync.Mutex
	limit *uint32 // nil until there is one
	conns map[*limitConn]struct{}
}

// SetStreamLimit tells clients on each connection, those that are open and all later ones, that it may have so many streams
// at a time (MAX_CONCURRENT_STREAMS). On a new connection the client hears it before it can send an RPC, on an open one
// some time after SetStreamLimit has returned. The node itself holds nobody to the limit, so that Live shows who keeps it;
// it must serve without TLS. grpc.MaxConcurrentStreams among ServerOptions is a limit that the server enforces and that
// cannot change.
func (n *Node) SetStreamLimit(limit uint32) {
	s := &n.streamLimits
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = &limit
	for c := range s.conns {
		if c.due.Swap(&limit) == nil { // else somebody is about to say what is due
			n.background.Go(c.tell)
		}
	}
}

// add lets a connection say the limit that is set, before all else. The connection takes itself out when it is closed.
func (s *streamLimits) add(conn net.Conn) *limitConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &limitConn{Conn: conn, limits: s}
	c.due.Store(s.limit)
	if s.conns == nil {
		s.conns = map[*limitConn]struct{}{}
	}
	s.conns[c] = struct{}{}
	return c
}

func (s *streamLimits) remove(c *limitConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// limitConn is a server's side of a connection that says limits of streams between the server's own frames.
type limitConn struct {
	net.Conn // embedded to intercept Write and Close
	limits   *streamLimits
	due      atomic.Pointer[uint32] // the limit that is to be said as soon as a frame of the server's is complete

	mu    sync.Mutex // held while bytes go out, which may take long
	begun bool       // the server has sent something
	sent  frames
}

// tell says what is due, unless the server's next Write has to. That a connection is broken its server learns itself.
func (c *limitConn) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun && c.sent.complete() {
		_ = c.sendDueLocked()
	}
}

func (c *limitConn) sendDueLocked() error {
	limit := c.due.Swap(nil)
	if limit == nil {
		return nil
	}
	_, err := c.Conn.Write(settings(*limit))
	return err
}

// Write sends what the server says, and what is due where one of its frames ends.
func (c *limitConn) Write(p []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = true
	for c.due.Load() != nil && !c.sent.complete() && n < len(p) {
		sent, err := c.Conn.Write(p[n : n+c.sent.next(p[n:])])
		if n += sent; err != nil {
			return n, err
		}
	}
	if c.sent.complete() {
		if err := c.sendDueLocked(); err != nil {
			return n, err
		}
	}
	for rest := p[n:]; len(rest) > 0; {
		rest = rest[c.sent.next(rest):]
	}
	sent, err := c.Conn.Write(p[n:])
	return n + sent, err
}

// Close closes the connection.
func (c *limitConn) Close() error {
	defer c.limits.remove(c)
	return c.Conn.Close()
}

// What there is to know of HTTP/2 frames (RFC 9113, sections 4.1, 6.2, 6.5 and 6.10).
const (
	headersFrame         = 1
	settingsFrame        = 4
	continuationFrame    = 9
	endHeaders           = 4 // flag
	maxConcurrentStreams = 3 // setting
)

// settings is a SETTINGS frame with a limit of streams.
func settings(limit uint32) []byte {
	frame := []byte{0, 0, 6, settingsFrame, 0, 0, 0, 0, 0, 0, maxConcurrentStreams}
	return binary.BigEndian.AppendUint32(frame, limit)
}

// frames follows the frames of one direction of a connection.
type frames struct {
	header [9]byte
	have   int  // bytes of the header
	rest   int  // bytes of the payload that are still to come, once the header is there
	opened bool // header fields that the next frame continues
}

// complete reports whether another frame may come in here.
func (f *frames) complete() bool { return f.have == 0 && !f.opened }

// next takes what p has of one frame, and returns how much that is.
func (f *frames) next(p []byte) (n int) {
	if f.have < len(f.header) {
		n = copy(f.header[f.have:], p)
		if f.have += n; f.have < len(f.header) {
			return n
		}
		f.rest = int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
	}
	payload := min(f.rest, len(p)-n)
	if f.rest -= payload; f.rest == 0 {
		f.have = 0
		kind, flags := f.header[3], f.header[4]
		f.opened = (kind == headersFrame || kind == continuationFrame) && flags&endHeaders == 0
	}
	return n + payload
}
