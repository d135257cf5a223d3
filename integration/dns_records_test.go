package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// A name with both families is a node for each address; of an SRV record it is
// one. Either family does alone, and so does a DNS server with an IPv6 address.
func TestDNSFamilies(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1", "::1")
	for _, server := range []string{"127.0.0.1", "::1"} {
		s := startDNS(t, server)
		for _, name := range []string{"v4", "v6", "both"} {
			s.set("SRV", "_grpc._tcp."+name+".test.", "0 0 "+port+" "+name+".test.")
		}
		s.set("A", "v4.test.", "127.0.0.1")
		s.set("A", "both.test.", "127.0.0.1")
		s.set("AAAA", "v6.test.", "::1")
		s.set("AAAA", "both.test.", "::1")
		polled, srv := "dns-poll://"+s.addr+"/%s.test:"+port+"?interval=1h", "srv://"+s.addr+"/_grpc._tcp.%s.test?interval=1h"
		for target, want := range map[string][]*leastconntest.Node{
			fmt.Sprintf(polled, "v4"):                 ns[:1],
			fmt.Sprintf(polled, "v6"):                 ns[1:],
			fmt.Sprintf(polled, "both"):               ns,
			fmt.Sprintf(polled, "both") + "&family=4": ns[:1],
			fmt.Sprintf(polled, "both") + "&family=6": ns[1:],
			fmt.Sprintf(srv, "v4"):                    ns[:1],
			fmt.Sprintf(srv, "v6"):                    ns[1:],
			fmt.Sprintf(srv, "both") + "&family=4":    ns[:1],
			fmt.Sprintf(srv, "both") + "&family=6":    ns[1:],
			"dns-poll:///[::1]:" + port:               ns[1:],
		} {
			by := map[string]int{}
			for _, n := range want {
				by[n.Name()] = 2
			}
			e := dialTarget(t, target, all(want...))
			e.waitReady(all(want...)...)
			e.hold(2*len(want), by)
			require.Len(t, e.snapshot().Endpoints, len(want), target)
			require.NoError(t, e.conn.Close()) // others share its load
			wait(t, "nothing is in flight", func() bool { return len(e.snapshot().Endpoints) == 0 })
		}
	}
}

// An SRV target with one A and one AAAA record is one endpoint. Its load stays
// with it when it changes from one address to the other.
func TestDNSDualStackTargetIsOneEndpoint(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "::1", "127.0.0.1", "127.0.0.2")
	v6, v4, other := ns[0], ns[1], ns[2]
	s := startDNS(t, "127.0.0.1")
	s.set("AAAA", "dual.test.", "::1")
	s.set("A", "dual.test.", "127.0.0.1")
	s.set("A", "other.test.", "127.0.0.2")
	s.set("SRV", "_grpc._tcp.api.test.", "0 0 "+port+" dual.test.", "0 0 "+port+" other.test.")
	e := dialTarget(t, fmt.Sprintf("srv://%s/_grpc._tcp.api.test?interval=100ms&emptyAfter=1", s.addr), all(v4, other))
	e.waitReady(v6, other)
	require.Len(t, e.snapshot().Endpoints, 2)
	require.ElementsMatch(t, []string{v6.Addr(), v4.Addr()}, e.endpoint(v6).Addresses)
	streams := e.hold(6, map[string]int{"a": 3, "c": 3})
	require.Zero(t, v4.Conns())

	// Streams of an old connection live on while the endpoint is reached by its
	// other address.
	s.set("AAAA", "dual.test.")
	wait(t, "an RPC goes to the other address", func() bool {
		by, err := e.unary()
		require.NoError(t, err)
		return by == v4.Name()
	})
	e.inFlight(3, 3)
	streams = append(streams, e.hold(2, map[string]int{"b": 1, "c": 1})...)
	e.alive(streams)
	require.Len(t, e.snapshot().Endpoints, 2)
}

// A name in the system's hosts file is not asked for, as with gRPC's dns; with a
// server and without.
func TestDNSHostsFile(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1")
	s := startDNS(t, "127.0.0.1")
	for _, server := range []string{s.addr, ""} {
		e := dialTarget(t, fmt.Sprintf("dns-poll://%s/localhost:%s?family=4", server, port), all(ns...))
		e.waitReady(ns[0])
		e.hold(1, map[string]int{"a": 1})
	}
	require.Zero(t, s.questionsInAll())
}

// RPCs go to the level of the lowest priority whose nodes work, in proportion to
// weights, of which 0 among others is the lowest share. What changes takes
// nothing from the counts.
func TestSRVPrioritiesAndWeights(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1", "127.0.0.2", "127.0.0.3")
	a, b, c := ns[0], ns[1], ns[2]
	s := startDNS(t, "127.0.0.1")
	set := func(records ...string) {
		for i, r := range records {
			records[i] = fmt.Sprintf("%s %s %s.test.", r[:len(r)-2], port, r[len(r)-1:])
		}
		s.set("SRV", "_grpc._tcp.api.test.", records...)
	}
	for _, n := range ns {
		s.set("A", n.Name()+".test.", ipOf(n))
	}
	set("0 0 a", "0 4 b", "10 0 c")
	e := dialTarget(t, fmt.Sprintf("srv://%s/_grpc._tcp.api.test?interval=200ms&emptyAfter=1&family=4", s.addr), all(ns...))
	e.waitReady(a, b, c)
	onA, onB := on("a", e.hold(10, map[string]int{"a": 2, "b": 8}))

	b.Stop()
	e.waitNotReady(b)
	onA = append(onA, e.hold(1, map[string]int{"a": 1})...)
	a.Stop()
	e.waitNotReady(a)
	onC := e.hold(3, map[string]int{"c": 3})
	for _, stream := range append(onA, onB...) {
		require.Error(t, stream.Ping(), "a stream on %s", stream.Node())
	}
	e.inFlight(0, 0, 3)

	require.NoError(t, a.Restart())
	e.waitReady(a)
	onA = e.hold(2, map[string]int{"a": 2})
	set("0 0 a", "0 0 c")
	wait(t, "c is promoted", func() bool {
		members := e.endpoint(c).Members
		return e.ready(c) && members[0].Priority == 0 && members[0].Weight == 1
	})
	e.hold(1, map[string]int{"a": 1})
	e.hold(2, map[string]int{"a": 1, "c": 1})
	set("10 0 a", "0 0 c")
	wait(t, "a is demoted", func() bool { return e.ready(a) && e.endpoint(a).Members[0].Priority != 0 })
	e.hold(2, map[string]int{"c": 2})
	e.inFlight(4, 0, 6)
	e.alive(onA, onC)
}
