package settings

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/mem"
)

// pair returns both ends of a connection.
func pair(t testing.TB, network, addr string) (client, server net.Conn) {
	l, err := net.Listen(network, addr)
	require.NoError(t, err)
	defer l.Close()
	client, err = net.Dial(network, l.Addr().String())
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
	})
	return client, server
}

// pool counts the buffers that are out.
type pool struct{ gets, puts atomic.Int64 }

func (p *pool) Get(n int) *[]byte {
	p.gets.Add(1)
	b := make([]byte, n)
	return &b
}

func (p *pool) Put(*[]byte) { p.puts.Add(1) }

// A plain socket is read as gRPC reads it: no buffer is held while nothing comes.
func TestPlainSocketHoldsNoBuffer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("gRPC reads so on Linux only")
	}
	for network, addr := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "socket")} {
		t.Run(network, func(t *testing.T) {
			client, server := pair(t, network, addr)
			var heard limits
			c, ok := newConn(client, &heard).(readyReader)
			require.True(t, ok)
			var p pool
			type result struct {
				buf *[]byte
				n   int
				err error
				had int64 // buffers got until then
			}
			results := make(chan result)
			go func() {
				for {
					buf, n, err := c.ReadOnReady(1000, &p)
					results <- result{buf, n, err, p.gets.Load()}
					if err != nil {
						return
					}
				}
			}()
			had := int64(0)
			for _, b := range [][]byte{settingsFrame(max, 4), data(5), settingsFrame(max, 6)} {
				require.Eventually(t, func() bool {
					puts := p.puts.Load()
					return p.gets.Load() == puts && puts > had
				}, time.Minute, time.Millisecond, "it waits without a buffer")
				_, err := server.Write(b)
				require.NoError(t, err)
				r := <-results
				require.NoError(t, r.err)
				require.Equal(t, b, (*r.buf)[:r.n])
				p.Put(r.buf)
				had = r.had
			}
			require.Equal(t, limits{4, 6}, heard)
			require.NoError(t, server.Close())
			r := <-results
			require.Equal(t, io.EOF, r.err)
			require.Nil(t, r.buf)
			require.Equal(t, p.gets.Load(), p.puts.Load())
		})
	}
}

// Errors come through, and take no buffer along.
func TestPlainSocketErrors(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("gRPC reads so on Linux only")
	}
	client, server := pair(t, "tcp", "127.0.0.1:0")
	c := newConn(client, &limits{})
	var p pool
	read := func() error {
		buf, n, err := c.(readyReader).ReadOnReady(100, &p)
		require.Nil(t, buf)
		require.Zero(t, n)
		require.Equal(t, p.gets.Load(), p.puts.Load())
		return err
	}
	require.NoError(t, c.SetReadDeadline(time.Now().Add(-time.Second)))
	require.ErrorIs(t, read(), os.ErrDeadlineExceeded)
	require.NoError(t, c.SetReadDeadline(time.Time{}))
	require.NoError(t, server.(*net.TCPConn).SetLinger(0)) // a reset
	require.NoError(t, server.Close())
	require.ErrorIs(t, read(), syscall.ECONNRESET)
	require.NoError(t, c.Close())
	require.ErrorIs(t, read(), net.ErrClosed)
}

// readyPipe is a connection that has the method that gRPC looks for, as ALTS's.
type readyPipe struct{ net.Conn }

func (p readyPipe) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	buf := pool.Get(size)
	n, err := p.Read(*buf)
	return buf, n, err
}

// A connection can be read without a buffer if what it wraps can, and only then.
func TestReadOnReadyOfWhatIsWrapped(t *testing.T) {
	client, server := net.Pipe()
	_, ok := newConn(client, &limits{}).(readyReader)
	require.False(t, ok)

	var heard limits
	c := newConn(readyPipe{client}, &heard).(readyReader)
	go func() { _, _ = server.Write(settingsFrame(max, 9)) }()
	buf, n, err := c.ReadOnReady(100, &pool{})
	require.NoError(t, err)
	require.Equal(t, settingsFrame(max, 9), (*buf)[:n])
	require.Equal(t, limits{9}, heard)

	require.NoError(t, server.Close())
	_, n, err = c.ReadOnReady(100, &pool{})
	require.Equal(t, io.EOF, err)
	require.Zero(t, n)
}

// channelz asks a connection for its socket.
func TestSocketOfWhatIsWrapped(t *testing.T) {
	client, _ := pair(t, "tcp", "127.0.0.1:0")
	raw, err := newConn(client, &limits{}).(syscall.Conn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(uintptr) {}))

	pipe, _ := net.Pipe()
	_, err = newConn(pipe, &limits{}).(syscall.Conn).SyscallConn()
	require.Error(t, err)
}
