package settings

import (
	"net"
	"syscall"

	"google.golang.org/grpc/mem"
)

// conn is a connection after its handshake that reads along. Like gRPC's reader,
// it expects no two reads at a time.
type conn struct {
	net.Conn // embedded to intercept Read
	frames   frames
}

func newConn(inner net.Conn, t Transport) net.Conn {
	c := conn{Conn: inner, frames: frames{transport: t}}
	if r := readyReaderOf(inner); r != nil {
		return &readyConn{conn: c, reader: r}
	}
	return &c
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.frames.read(b[:n])
	}
	return n, err
}

// SyscallConn is for channelz, which asks the socket for its options. gRPC does
// not read through it, except from a plain TCP or Unix connection.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, syscall.EOPNOTSUPP
}

// readyReader is the interface that gRPC looks for in a connection to take a
// buffer for reading only once there is something to read. Without it, each idle
// connection holds a buffer of 32 kB.
type readyReader interface {
	// ReadOnReady waits, gets a buffer of size bytes from the pool, reads once, and
	// returns the buffer with the number of bytes read. The caller puts it back. On
	// an error there is no buffer.
	ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error)
}

// readyReaderOf returns how to read a connection in that way if gRPC would: if
// the connection itself can, as that of ALTS, or if it is a plain socket.
func readyReaderOf(c net.Conn) readyReader {
	switch c := c.(type) {
	case readyReader:
		return c
	case *net.TCPConn:
		return newRawReader(c)
	case *net.UnixConn:
		return newRawReader(c)
	}
	return nil
}

// readyConn is a conn that gRPC reads with ReadOnReady.
type readyConn struct {
	conn
	reader readyReader
}

func (c *readyConn) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	buf, n, err := c.reader.ReadOnReady(size, pool)
	if buf != nil && n > 0 {
		c.frames.read((*buf)[:n])
	}
	return buf, n, err
}
