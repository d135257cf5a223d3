package leastconntest_test

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// proxyEnv is a proxy before a TCP server that a test plays.
type proxyEnv struct {
	*testing.T
	*leastconntest.Proxy
	server net.Listener
}

func newProxyEnv(t *testing.T) *proxyEnv {
	s := &proxyEnv{T: t, server: listen(t)}
	p, err := leastconntest.StartProxy(s.server.Addr().String())
	require.NoError(t, err)
	t.Cleanup(p.Close)
	s.Proxy = p
	return s
}

func listen(t *testing.T) net.Listener {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { server.Close() })
	return server
}

// dial opens a connection to the proxy.
func (s *proxyEnv) dial() *net.TCPConn {
	s.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	require.NoError(s, err)
	s.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// accept takes the next connection at the server.
func (s *proxyEnv) accept(server net.Listener) *net.TCPConn {
	s.Helper()
	require.NoError(s, server.(*net.TCPListener).SetDeadline(time.Now().Add(leastconntest.DefaultTimeout)))
	conn, err := server.Accept()
	require.NoError(s, err)
	s.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// open opens a connection and returns both ends.
func (s *proxyEnv) open() (client, server *net.TCPConn) {
	s.Helper()
	client = s.dial()
	return client, s.accept(s.server)
}

// ends are the two ends of a connection as bytes see them that go in a direction.
func ends(d leastconntest.Direction, client, server *net.TCPConn) (from, to *net.TCPConn) {
	if d == leastconntest.ServerToClient {
		return server, client
	}
	return client, server
}

var bothWays = []leastconntest.Direction{leastconntest.ClientToServer, leastconntest.ServerToClient}

func (s *proxyEnv) send(to *net.TCPConn, text string) {
	s.Helper()
	_, err := to.Write([]byte(text))
	require.NoError(s, err)
}

// gets checks what is received next.
func (s *proxyEnv) gets(at *net.TCPConn, want string) {
	s.Helper()
	got := make([]byte, len(want))
	require.NoError(s, at.SetReadDeadline(time.Now().Add(leastconntest.DefaultTimeout)))
	_, err := io.ReadFull(at, got)
	require.NoError(s, err)
	require.Equal(s, want, string(got))
}

// getsNothing checks that neither a byte nor an end is received for a while.
func (s *proxyEnv) getsNothing(at *net.TCPConn) {
	s.Helper()
	require.NoError(s, at.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	n, err := at.Read(make([]byte, 1))
	require.Zero(s, n)
	require.ErrorContains(s, err, "i/o timeout")
}

// isReset checks that the connection is broken.
func (s *proxyEnv) isReset(at *net.TCPConn) {
	s.Helper()
	require.NoError(s, at.SetReadDeadline(time.Now().Add(leastconntest.DefaultTimeout)))
	_, err := io.Copy(io.Discard, at)
	require.ErrorIs(s, err, syscall.ECONNRESET)
}

// refused checks that the proxy resets a new connection.
func (s *proxyEnv) refused() {
	s.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		require.ErrorIs(s, err, syscall.ECONNRESET)
		return
	}
	defer conn.Close()
	s.isReset(conn.(*net.TCPConn))
}

func (s *proxyEnv) conns(want int) {
	s.Helper()
	eventually(s.T, "open connections", func() bool { return s.Conns() == want })
}
