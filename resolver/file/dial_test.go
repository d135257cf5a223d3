package file_test

import (
	"fmt"
	"net"
	"os"
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

// check makes a health check and returns its error.
func (c *channel) check() error {
	_, err := grpc_health_v1.NewHealthClient(c).Check(c.env.ctx, &grpc_health_v1.HealthCheckRequest{})
	return err
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

// A node with an address of each family is one endpoint, with one count.
func TestDualStack(t *testing.T) {
	s := newEnv(t)
	both, err := leastconntest.StartNode(leastconntest.Options{Name: "both", Addr: "[::]:0"})
	require.NoError(t, err, "the test needs IPv6")
	t.Cleanup(both.Close)
	single := s.nodes("single")[0]
	_, port, _ := net.SplitHostPort(both.Addr())
	s.put(fmt.Sprintf("nodes:\n  - addresses: [\"127.0.0.1:%s\", \"[::1]:%s\"]\n  - address: %q\n", port, port, single.Addr()))
	ch := s.dial()
	ch.Connect()
	s.wait("two ready nodes", func() bool {
		nodes := s.snapshot("nodes://" + s.path).Endpoints
		return len(nodes) == 2 && len(nodes[0].Members) == 1 && nodes[0].Members[0].Ready && len(nodes[1].Members) == 1 && nodes[1].Members[0].Ready
	})
	streams, by := ch.openStreams(6)
	require.Equal(t, map[string]int{"both": 3, "single": 3}, by)
	for _, n := range s.snapshot("nodes://" + s.path).Endpoints {
		require.EqualValues(t, 3, n.InFlight)
	}
	require.Equal(t, 1, both.Conns())
	// It keeps its count when it loses a family.
	s.put(fmt.Sprintf("nodes:\n  - address: \"[::1]:%s\"\n  - address: %q\n", port, single.Addr()))
	s.wait("one address", func() bool {
		for _, n := range s.snapshot("nodes://" + s.path).Endpoints {
			if len(n.Members) == 1 && n.Members[0].Ready && n.Addresses[0] == "[::1]:"+port && n.InFlight == 3 {
				return true
			}
		}
		return false
	})
	ch.checkStreams(streams)
}
