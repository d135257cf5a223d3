package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// srvPods sets up an SRV name whose targets pod-a, pod-b and so on are the nodes.
func srvPods(t *testing.T, ips ...string) (s *dnsServer, ns []*leastconntest.Node, record func(level, weight int, pod string) string) {
	t.Helper()
	ns, port := startNodesOn(t, leastconntest.Options{}, ips...)
	s = startDNS(t, "127.0.0.1")
	for i, n := range ns {
		s.set("A", "pod-"+n.Name()+".test.", ips[i])
	}
	return s, ns, func(level, weight int, pod string) string {
		return fmt.Sprintf("%d %d %s pod-%s.test.", level, weight, port, pod)
	}
}

const srvName = "_grpc._tcp.api.test."

func dialSRV(t *testing.T, s *dnsServer) *link {
	t.Helper()
	return dialTarget(t, fmt.Sprintf("srv://%s/_grpc._tcp.api.test?interval=200ms&emptyAfter=1&family=4", s.addr))
}

// TestSRVPriorities: RPCs go to level 0 until its nodes fail, then to the next
// one, and back when a node of level 0 is back. Streams stay where they are, and
// so do the counts.
func TestSRVPriorities(t *testing.T) {
	s, ns, record := srvPods(t, "127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4")
	s.set("SRV", srvName, record(20, 0, "d"), record(10, 0, "c"), record(0, 0, "a"), record(0, 0, "b"))
	l := dialSRV(t, s)
	l.waitUsable(ns...)
	lost, by := l.hold(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)

	ns[0].Stop()
	wait(t, "a is not used", func() bool { return !l.usable(ns[0]) })
	onB, by := l.hold(1)
	require.Equal(t, map[string]int{"b": 1}, by)
	ns[1].Stop()
	wait(t, "b is not used", func() bool { return !l.usable(ns[1]) })
	onC, by := l.hold(3)
	require.Equal(t, map[string]int{"c": 3}, by)

	for _, h := range append(lost, onB...) {
		require.Error(t, h.ping(), "stream on %s", h.node)
	}
	require.Equal(t, []int{0, 0, 3, 0}, l.inFlight(ns...))

	require.NoError(t, ns[0].Restart())
	l.waitUsable(ns[0])
	onA, by := l.hold(2)
	require.Equal(t, map[string]int{"a": 2}, by)
	require.Equal(t, []int{2, 0, 3, 0}, l.inFlight(ns...))

	// The same by what the records say: c is promoted and keeps its count.
	s.set("SRV", srvName, record(20, 0, "d"), record(0, 0, "c"), record(0, 0, "a"))
	wait(t, "c is on level 0", func() bool {
		e, _ := l.entry(ns[2].Addr())
		return len(e.Members) == 1 && e.Members[0].Ready && e.Members[0].Priority == 0
	})
	_, by = l.hold(3)
	require.Equal(t, map[string]int{"a": 2, "c": 1}, by)
	s.set("SRV", srvName, record(20, 0, "d"))
	wait(t, "only d is listed", func() bool { return !l.usable(ns[0]) && !l.usable(ns[2]) })
	_, by = l.hold(1)
	require.Equal(t, map[string]int{"d": 1}, by)
	s.set("SRV", srvName, record(20, 0, "d"), record(0, 0, "c"), record(0, 0, "a"))
	l.waitUsable(ns[0], ns[2])
	require.Equal(t, []int{4, 0, 4, 1}, l.inFlight(ns...))
	l.alive(append(onA, onC...))
}

// TestSRVWeights: shares are in proportion. Weight 0 among others is the lowest
// share and not none, as a drained endpoint has.
func TestSRVWeights(t *testing.T) {
	s, ns, record := srvPods(t, "127.0.0.1", "127.0.0.2", "127.0.0.3")
	s.set("SRV", srvName, record(0, 0, "a"), record(0, 4, "b"), record(0, 8, "c"))
	l := dialSRV(t, s)
	l.waitUsable(ns...)
	streams, by := l.hold(13)
	require.Equal(t, map[string]int{"a": 1, "b": 4, "c": 8}, by)

	// Of zeros only, all are equal.
	s.set("SRV", srvName, record(0, 0, "a"), record(0, 0, "b"), record(0, 0, "c"))
	wait(t, "the weights are equal", func() bool {
		e, _ := l.entry(ns[2].Addr())
		return len(e.Members) == 1 && e.Members[0].Weight == 1
	})
	more, by := l.hold(11)
	require.Equal(t, map[string]int{"a": 7, "b": 4}, by)
	require.Equal(t, []int{8, 8, 8}, l.inFlight(ns...))
	l.alive(append(streams, more...))
}

// TestSRVScaleOut: a new record takes the next streams, a target with several
// addresses is as many nodes.
func TestSRVScaleOut(t *testing.T) {
	s, ns, record := srvPods(t, "127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4")
	s.set("A", "pod-b.test.", "127.0.0.2", "127.0.0.3")
	s.set("SRV", srvName, record(0, 0, "a"))
	l := dialSRV(t, s)
	l.waitUsable(ns[0])
	streams, _ := l.hold(2)
	s.set("SRV", srvName, record(0, 0, "a"), record(0, 0, "b"))
	l.waitUsable(ns[1:3]...)
	more, by := l.hold(4)
	require.Equal(t, map[string]int{"b": 2, "c": 2}, by)
	s.set("A", "pod-b.test.", "127.0.0.2", "127.0.0.3", "127.0.0.4")
	l.waitUsable(ns[3])
	_, by = l.hold(2)
	require.Equal(t, map[string]int{"d": 2}, by)
	l.alive(append(streams, more...))
}

// TestSRVManyTargets: more than are looked up at a time, in an answer that comes
// over TCP.
func TestSRVManyTargets(t *testing.T) {
	var ips []string
	for i := range 40 {
		ips = append(ips, fmt.Sprint("127.0.1.", i+1))
	}
	s, ns, record := srvPods(t, ips...)
	var records []string
	for _, n := range ns {
		records = append(records, record(0, 0, n.Name()))
	}
	s.set("SRV", srvName, records...)
	l := dialSRV(t, s)
	l.waitUsable(ns...)
	require.NotZero(t, s.questionsOverTCP())
	_, by := l.hold(80)
	require.Len(t, by, 40)
	for node, n := range by {
		require.Equal(t, 2, n, node)
	}
}
