package settings

import (
	"io"
	"syscall"

	"google.golang.org/grpc/mem"
)

// rawReader reads a socket with a buffer that it takes when there is something to
// read.
type rawReader struct {
	raw  syscall.RawConn
	once func(fd uintptr) bool // of the method, which would be allocated at each read

	// Of the read that is under way.
	pool mem.BufferPool
	size int
	buf  *[]byte
	n    int
	err  error
}

// newRawReader returns nil if the socket cannot be read so.
func newRawReader(c syscall.Conn) readyReader {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	r := &rawReader{raw: raw}
	r.once = r.readOnce
	return r
}

func (r *rawReader) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	r.size, r.pool = size, pool
	err := r.raw.Read(r.once)
	buf, n := r.buf, r.n
	if err == nil {
		err = r.err
	}
	r.pool, r.buf, r.n, r.err = nil, nil, 0, nil
	switch {
	case buf == nil:
		return nil, 0, err
	case err == nil && n == 0:
		err = io.EOF
	}
	if err != nil {
		pool.Put(buf)
		return nil, 0, err
	}
	return buf, n, nil
}

// readOnce reports whether the read is over. Otherwise it is called again when the
// socket is ready, and holds no buffer until then.
func (r *rawReader) readOnce(fd uintptr) bool {
	buf := r.pool.Get(r.size)
	n, err := syscall.Read(int(fd), *buf)
	for err == syscall.EINTR {
		n, err = syscall.Read(int(fd), *buf)
	}
	if err == nil {
		r.buf, r.n = buf, n
		return true
	}
	r.pool.Put(buf)
	if err == syscall.EAGAIN {
		return false
	}
	r.err = err
	return true
}
