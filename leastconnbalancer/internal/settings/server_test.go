package settings_test

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/settings"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// rawServer is a server that says what it is told to and reads whatever comes. It
// begins each connection with hello.
type rawServer struct {
	resolver.Address
	conns chan net.Conn
}

func startRawServer(t *testing.T, hello []byte) *rawServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &rawServer{Address: resolver.Address{Addr: l.Addr().String()}, conns: make(chan net.Conn, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(hello)
			s.conns <- c
			go func() { _, _ = io.Copy(io.Discard, c) }()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		for close(s.conns); len(s.conns) > 0; {
			_ = (<-s.conns).Close()
		}
	})
	return s
}

// settingsOf returns a SETTINGS frame that has one parameter, or none.
func settingsOf(pair ...uint32) []byte {
	if len(pair) == 0 {
		return []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}
	}
	id, v := pair[0], pair[1]
	return []byte{0, 0, 6, 4, 0, 0, 0, 0, 0, byte(id >> 8), byte(id), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
}

const maxStreams = 3

// The limit is known when the channel is READY, and every change of it later on.
func TestServerChangesItsLimit(t *testing.T) {
	s := startRawServer(t, settingsOf(maxStreams, 100))
	e := &ears{}
	c := dial(t, e, s.Address)
	waitState(t, c, connectivity.Ready)
	require.Equal(t, [][]uint32{{100}}, e.heard())

	conn := <-s.conns
	defer conn.Close()
	want := []uint32{100}
	for _, limit := range []uint32{10, 0, 1 << 31, settings.NoLimit, 3} {
		_, err := conn.Write(append(settingsOf(4, 1<<17), settingsOf(maxStreams, limit)...))
		require.NoError(t, err)
		want = append(want, limit)
		e.waitFor(t, want)
	}
	require.Equal(t, connectivity.Ready, c.Conn().GetState())
}

func TestServerWithoutALimit(t *testing.T) {
	s := startRawServer(t, settingsOf())
	e := &ears{}
	waitState(t, dial(t, e, s.Address), connectivity.Ready)
	require.Equal(t, [][]uint32{{settings.NoLimit}}, e.heard())
}

// What is not HTTP/2 has no limit, and fails as it does without a listener.
func TestServerSpeaksSomethingElse(t *testing.T) {
	s := startRawServer(t, []byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"))
	e := &ears{}
	waitState(t, dial(t, e, s.Address), connectivity.TransientFailure)
	require.NotEmpty(t, e.heard())
	for _, limits := range e.heard() {
		require.Empty(t, limits)
	}
}

// Each transport of a SubConn has a limit of its own.
func TestEachTransport(t *testing.T) {
	n, addr := startNode(t, grpc.MaxConcurrentStreams(7))
	e := &ears{}
	c := dial(t, e, addr)
	stream, err := c.Open(t.Context())
	require.NoError(t, err)
	require.Equal(t, [][]uint32{{7}}, e.heard())
	n.GoAway()
	require.NoError(t, leastconntest.WaitFor(t.Context(), "another connection", func() bool {
		c.Connect() // once the channel is idle
		return len(e.heard()) > 1
	}))
	e.waitFor(t, []uint32{7}, []uint32{7})
	require.NoError(t, stream.Ping())
	require.NoError(t, stream.End())
}
