package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// TestDNSOverIPv6Only: server, records and nodes.
func TestDNSOverIPv6Only(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "::1")
	s := startDNS(t, "::1")
	s.set("AAAA", "api.test.", "::1")
	s.set("SRV", "_grpc._tcp.api.test.", "0 0 "+port+" api.test.")
	for _, target := range []string{
		fmt.Sprintf("dns-poll://%s/api.test:%s?interval=100ms&emptyAfter=1", s.addr, port),
		fmt.Sprintf("srv://%s/_grpc._tcp.api.test?interval=100ms&emptyAfter=1", s.addr),
		fmt.Sprintf("dns-poll:///[::1]:%s", port),
	} {
		l := dialTarget(t, target)
		l.waitUsable(ns...)
		streams, by := l.hold(2)
		require.Equal(t, map[string]int{"a": 2}, by, target)
		if target[0] == 's' {
			s.waitQuestions("A", "api.test.", 5)
		}
		l.alive(streams)
	}
	require.Equal(t, 3, ns[0].Conns())
}

// TestDNSFamily: a name with both families, each address a node of its own.
func TestDNSFamily(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1", "::1")
	s := startDNS(t, "127.0.0.1")
	for name, test := range map[string]struct {
		parameter string
		nodes     []*leastconntest.Node
	}{"v4": {"&family=4", ns[:1]}, "v6": {"&family=6", ns[1:]}, "both": {"", ns}} {
		s.set("A", name+".test.", "127.0.0.1")
		s.set("AAAA", name+".test.", "::1")
		s.set("SRV", "_grpc._tcp."+name+".test.", "0 0 "+port+" "+name+".test.")
		want := map[string]int{}
		for _, n := range test.nodes {
			want[n.Name()] = 2
		}
		l := dialTarget(t, fmt.Sprintf("dns-poll://%s/%s.test:%s?interval=1h%s", s.addr, name, port, test.parameter))
		l.waitUsable(test.nodes...)
		_, by := l.hold(2 * len(test.nodes))
		require.Equal(t, want, by, name)

		if name == "both" {
			continue // of an SRV record it is one endpoint
		}
		l = dialTarget(t, fmt.Sprintf("srv://%s/_grpc._tcp.%s.test?interval=1h%s", s.addr, name, test.parameter))
		l.waitUsable(test.nodes...)
		_, by = l.hold(2)
		require.Equal(t, want, by, name)
	}
}

// TestDNSDualStackTargetIsOneEndpoint: an SRV target with one A and one AAAA
// record. Its load stays with it when it changes from one address to the other.
func TestDNSDualStackTargetIsOneEndpoint(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "::1", "127.0.0.1", "127.0.0.2")
	v6, v4, other := ns[0], ns[1], ns[2]
	s := startDNS(t, "127.0.0.1")
	s.set("AAAA", "dual.test.", "::1")
	s.set("A", "dual.test.", "127.0.0.1")
	s.set("A", "other.test.", "127.0.0.2")
	s.set("SRV", "_grpc._tcp.api.test.", "0 0 "+port+" dual.test.", "0 0 "+port+" other.test.")
	l := dialTarget(t, fmt.Sprintf("srv://%s/_grpc._tcp.api.test?interval=100ms&emptyAfter=1", s.addr))
	l.waitUsable(v6, other)
	require.Len(t, l.entries(), 2)
	e, _ := l.entry(v6.Addr())
	require.ElementsMatch(t, []string{v6.Addr(), v4.Addr()}, e.Addresses)
	streams, by := l.hold(6)
	require.Equal(t, map[string]int{"a": 3, "c": 3}, by)
	require.Zero(t, v4.Conns())

	// Streams of an old connection live on while the endpoint is reached by its
	// other address.
	s.set("AAAA", "dual.test.")
	wait(t, "an RPC goes to the other address", func() bool {
		node, err := l.unary()
		require.NoError(t, err)
		return node == v4.Name()
	})
	require.Equal(t, []int{3, 3}, l.inFlight(v4, other))
	more, by := l.hold(2)
	require.Equal(t, map[string]int{"b": 1, "c": 1}, by)
	l.alive(append(streams, more...))
	require.Len(t, l.entries(), 2)
}

// TestDNSHostsFile: a name in the system's hosts file is not asked for, as with
// gRPC's dns; with a server and without.
func TestDNSHostsFile(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1")
	s := startDNS(t, "127.0.0.1")
	for _, server := range []string{s.addr, ""} {
		l := dialTarget(t, fmt.Sprintf("dns-poll://%s/localhost:%s?family=4", server, port))
		l.waitUsable(ns...)
		l.hold(1)
	}
	require.Zero(t, s.questions("A", "localhost."))
}
