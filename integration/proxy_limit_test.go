package integration

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// A proxy that takes two streams for each connection: those that wait for their
// turn are counted where they wait, which steers others away, and each gives its
// count back once, whether it got its turn or not.
func TestProxyLimitsConcurrentStreams(t *testing.T) {
	eachProxy(t, func(t *testing.T, k proxyKind) {
		ns := startNodes(t, "near", "far", "new")
		p := startProxy(t, k, k.limit(2), ns[1])
		m := dialMix(t, ns[0], p)
		far, near := on("far", m.hold(4, map[string]int{"near": 2, "far": 2}))

		waiting, giveUp := context.WithCancel(m.ctx)
		defer giveUp()
		opened := make(chan []*leastconntest.Stream, 1)
		go func() {
			streams, _ := m.OpenTogether(waiting, 6)
			opened <- streams
		}()
		wait(t, "six more streams are counted", func() bool { return m.snapshot().InFlight == 10 })
		m.inFlight(5, 5)
		wait(t, "those on the node are open", func() bool { return ns[0].HeldStreams() == 5 })
		require.Equal(t, 2, ns[1].Started(), "streams through the proxy")

		m.list(ns[0], p, ns[2])
		more := m.hold(5, map[string]int{"new": 5})

		require.NoError(t, far[0].End())
		wait(t, "the next stream has its turn", func() bool { return ns[1].Started() == 3 })
		m.inFlight(5, 4, 5)
		require.Equal(t, 2, ns[1].HeldStreams())

		giveUp()
		leastconntest.CancelAll(<-opened)
		m.counts(2, 1, 5)
		m.endAll(near, far[1:], more)
		m.counts(0, 0, 0)
	})
}

// nginx sends a GOAWAY when a connection has carried so many RPCs. Streams live
// on where they are, and all that are open are counted.
func TestNginxLimitsRequestsOfConnections(t *testing.T) {
	p := startProxy(t, nginx, settings{HTTP: "keepalive_requests 4;"}, startNodes(t, "far")[0])
	m := dialMix(t, p)
	var streams []*leastconntest.Stream
	for i := range 20 {
		streams = append(streams, m.hold(1, map[string]int{"far": 1})...)
		m.counts(i + 1)
	}
	_, open := m.conns.of(p)
	require.GreaterOrEqual(t, open, 5, "connections that carry streams")

	for range 40 {
		_, err := m.Unary(m.ctx)
		require.NoError(t, err)
		m.inFlight(20)
	}
	begun, _ := m.conns.of(p)
	require.GreaterOrEqual(t, begun, 15, "connections")
	m.endAll(streams)
	m.counts(0)
}

// A proxy closes idle connections. The channel makes new ones at once, and
// nothing is counted meanwhile.
func TestProxyClosesIdleConnections(t *testing.T) {
	eachProxy(t, func(t *testing.T, k proxyKind) {
		p := startProxy(t, k, k.idle, startNodes(t, "far")[0])
		m := dialMix(t, p)
		for range 3 {
			m.counts(0)
			begun, _ := m.conns.of(p)
			wait(t, "another connection", func() bool {
				n, _ := m.conns.of(p)
				return n > begun
			})
			streams := m.hold(3, map[string]int{"far": 3})
			m.counts(3)
			m.endAll(streams)
		}
		m.counts(0)
	})
}
