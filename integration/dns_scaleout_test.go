package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// TestD68PollingSeesAScaleOut: a third record, and no failure anywhere. The
// third node is heard of with the next lookup, takes the next streams until it
// is level, and the streams there are do not notice.
func TestD68PollingSeesAScaleOut(t *testing.T) {
	const interval = time.Second
	ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1", "127.0.0.2", "127.0.0.3")
	s := startDNS(t, "127.0.0.1")
	s.set("A", "api.test.", "127.0.0.1", "127.0.0.2")
	l := dialTarget(t, fmt.Sprintf("dns-poll://%s/api.test:%s?interval=%s", s.addr, port, interval))
	l.waitUsable(ns[:2]...)
	streams, by := l.hold(6)
	require.Equal(t, map[string]int{"a": 3, "b": 3}, by)
	s.waitQuestions("A", "api.test.", 1)
	require.Zero(t, ns[2].Conns())

	lookups := s.questions("A", "api.test.")
	s.set("A", "api.test.", "127.0.0.1", "127.0.0.2", "127.0.0.3")
	l.waitUsable(ns[2])
	// One lookup may have been on its way with the old answer.
	require.LessOrEqual(t, s.questions("A", "api.test."), lookups+2, "lookups until the third node is used")

	_, by = l.hold(3)
	require.Equal(t, map[string]int{"c": 3}, by)
	more, by := l.hold(3)
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, by)
	require.Equal(t, []int{4, 4, 4}, l.inFlight(ns...))
	l.alive(append(streams, more...))
	for _, n := range ns {
		require.Equal(t, 1, n.Conns(), "connections to %s so far", n.Name())
	}

	// The other way round: a node that is no longer listed keeps its streams.
	s.set("A", "api.test.", "127.0.0.2", "127.0.0.3")
	wait(t, "a is not used", func() bool { return !l.usable(ns[0]) })
	_, by = l.hold(4)
	require.Equal(t, map[string]int{"b": 2, "c": 2}, by)
	l.alive(streams)
	require.Equal(t, []int{4, 6, 6}, l.inFlight(ns...))
}

// TestD68PlainDNSDoesNotSee: gRPC's own dns never asks again, while lookups of
// dns-poll go by.
func TestD68PlainDNSDoesNotSee(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1", "127.0.0.2", "127.0.0.3")
	s := startDNS(t, "127.0.0.1")
	s.set("A", "plain.test.", "127.0.0.1", "127.0.0.2")
	s.set("A", "polled.test.", "127.0.0.1", "127.0.0.2")
	plain := dialTarget(t, fmt.Sprintf("dns://%s/plain.test:%s", s.addr, port))
	polled := dialTarget(t, fmt.Sprintf("dns-poll://%s/polled.test:%s?interval=200ms", s.addr, port))
	plain.waitUsable(ns[:2]...)
	polled.waitUsable(ns[:2]...)

	s.set("A", "plain.test.", "127.0.0.1", "127.0.0.2", "127.0.0.3")
	s.set("A", "polled.test.", "127.0.0.1", "127.0.0.2", "127.0.0.3")
	polled.waitUsable(ns[2])
	s.waitQuestions("A", "polled.test.", 10)

	require.Equal(t, 1, s.questions("A", "plain.test."))
	_, by := plain.hold(6)
	require.Equal(t, map[string]int{"a": 3, "b": 3}, by)
	_, by = polled.hold(6)
	require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 2}, by)
	require.Equal(t, 1, ns[2].Conns())
}

// A broken connection is a reason to look at once.
func TestDNSPollLooksWhenAConnectionBreaks(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1", "127.0.0.2")
	s := startDNS(t, "127.0.0.1")
	s.set("A", "api.test.", "127.0.0.1")
	l := dialTarget(t, fmt.Sprintf("dns-poll://%s/api.test:%s?interval=1h&minInterval=100ms", s.addr, port))
	l.waitUsable(ns[0])
	s.set("A", "api.test.", "127.0.0.2")
	ns[0].Stop()
	l.waitUsable(ns[1])
	_, by := l.hold(2)
	require.Equal(t, map[string]int{"b": 2}, by)
}

// TestDNSPollOneHundredRecords: an answer that does not fit in a UDP packet
// comes over TCP.
func TestDNSPollOneHundredRecords(t *testing.T) {
	var ips []string
	for i := range 100 {
		ips = append(ips, fmt.Sprint("127.0.1.", i+1))
	}
	ns, port := startNodesOn(t, leastconntest.Options{}, ips...)
	s := startDNS(t, "127.0.0.1")
	s.set("A", "api.test.", ips[:3]...)
	l := dialTarget(t, fmt.Sprintf("dns-poll://%s/api.test:%s?interval=500ms", s.addr, port))
	l.waitUsable(ns[:3]...)
	require.Zero(t, s.questionsOverTCP())

	s.set("A", "api.test.", ips...)
	l.waitUsable(ns...)
	require.NotZero(t, s.questionsOverTCP())
	_, by := l.hold(200)
	require.Len(t, by, 100)
	for node, n := range by {
		require.Equal(t, 2, n, node)
	}
	s.waitQuestions("A", "api.test.", 2)
	for _, n := range ns {
		require.Equal(t, 1, n.Conns(), "connections to %s so far", n.Name())
	}
}
