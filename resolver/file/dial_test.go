package file

import (
	"fmt"
	"net"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// serve answers health checks on a socket until the test ends, and returns what
// it was called by.
func (s *env) serve(network, address string, options ...grpc.ServerOption) (listener net.Listener, authorities chan string) {
	s.Helper()
	listener, err := net.Listen(network, address)
	require.NoError(s, err)
	authorities = make(chan string, 100)
	server := grpc.NewServer(append(options, grpc.UnaryInterceptor(authorityTo(authorities)))...)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	s.Cleanup(func() {
		server.Stop()
		<-served
	})
	return listener, authorities
}

// Unix sockets in each spelling are dialled as such.
func TestUnixSockets(t *testing.T) {
	for name, address := range map[string]func(dir string) (listen, listed string){
		"path":           func(dir string) (string, string) { return dir + "/a.sock", "unix:" + dir + "/a.sock" },
		"URL":            func(dir string) (string, string) { return dir + "/a.sock", "unix://" + dir + "/a.sock" },
		"odd characters": func(dir string) (string, string) { return dir + "/a %?#:.sock", "unix:" + dir + "/a %?#:.sock" },
		"relative":       func(string) (string, string) { return "a.sock", "unix:a.sock" },
		"abstract":       func(dir string) (string, string) { return "@leastconn" + dir, "unix-abstract:leastconn" + dir },
	} {
		t.Run(name, func(t *testing.T) {
			// The path of a socket must be short.
			dir, err := os.MkdirTemp("", "nodes")
			require.NoError(t, err)
			t.Cleanup(func() { os.RemoveAll(dir) })
			t.Chdir(dir)
			s := newEnv(t)
			listen, listed := address(dir)
			_, authorities := s.serve("unix", listen)
			s.put(fmt.Sprintf("nodes: [{address: %q}]\n", listed))
			ch := s.dial()
			require.NoError(t, ch.check())
			require.Equal(t, "localhost", <-authorities)
		})
	}
}

// Host names and zones are the dialer's business.
func TestHosts(t *testing.T) {
	for name, host := range map[string]struct{ listen, listed, authority string }{
		"IPv4":      {"127.0.0.1", "127.0.0.1", "127.0.0.1"},
		"host name": {"127.0.0.1", "localhost", "localhost"},
		"IPv6":      {"::1", "[::1]", "[::1]"},
		"zone":      {"::1", "[::1%lo]", "[::1]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			probe, err := net.Listen("tcp", net.JoinHostPort(host.listen, "0"))
			require.NoError(t, err, "the test needs both families on loopback")
			probe.Close()
			listener, authorities := s.serve("tcp", net.JoinHostPort(host.listen, "0"))
			_, port, _ := net.SplitHostPort(listener.Addr().String())
			s.put(fmt.Sprintf("nodes: [{address: \"%s:%s\"}]\n", host.listed, port))
			require.NoError(t, s.dial().check())
			require.Equal(t, host.authority+":"+port, <-authorities, "as if dialled by hand")
		})
	}
}

// A node with an address of each family is one endpoint, with one count, which
// it keeps when it loses a family.
func TestDualStack(t *testing.T) {
	e := newEnv(t)
	both, err := leastconntest.StartNode(leastconntest.Options{Name: "both", Addr: "[::]:0"})
	require.NoError(t, err, "the test needs IPv6")
	t.Cleanup(both.Close)
	single := e.nodes("single")[0]
	_, port, _ := net.SplitHostPort(both.Addr())
	v4, v6, key := "127.0.0.1:"+port, "[::1]:"+port, "nodes://"+e.path
	e.put(fmt.Sprintf("nodes:\n  - addresses: [%q, %q]\n  - address: %q\n", v4, v6, single.Addr()))
	ch := e.dial()
	has := func(addrs ...string) (inFlight int, ok bool) {
		for _, ep := range e.endpoints(key) {
			if slices.Equal(ep.Addresses, addrs) && len(ep.Members) == 1 && ep.Members[0].Ready {
				return int(ep.InFlight), true
			}
		}
		return 0, false
	}
	e.wait("two ready nodes", func() bool {
		_, one := has(v4, v6)
		_, two := has(single.Addr())
		return one && two
	})
	streams, by := ch.openStreams(6)
	require.Equal(t, map[string]int{"both": 3, "single": 3}, by)
	inFlight, _ := has(v4, v6)
	require.Equal(t, 3, inFlight)
	require.Equal(t, 1, both.Conns())
	e.put(fmt.Sprintf("nodes:\n  - address: %q\n  - address: %q\n", v6, single.Addr()))
	e.wait("one address", func() bool { n, ok := has(v6); return ok && n == 3 })
	requireAlive(t, streams)
}
