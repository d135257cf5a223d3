package integration

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// TestPeersMaxConnectionAge: streams on a connection that its server has aged
// out count on, beside those on the next one.
func TestPeersMaxConnectionAge(t *testing.T) {
	eachLanguage(t, func(t *testing.T, lang language) {
		ageing, b := startPeer(t, lang, "--max-age-ms", "300"), startNodes(t, "b")[0]
		servers := []server{ageing, b}
		l := dialPeers(t, ageing)
		streams := l.hold(6, map[string]int{lang.name: 6})
		l.list(servers...)
		wait(t, lang.name+" has aged twice", func() bool {
			begun, _ := l.conns.of(ageing)
			return begun >= 3 && l.ready(ageing)
		})
		l.counts(servers, 6, 0)
		l.hold(6, map[string]int{"b": 6})
		require.NoError(t, leastconntest.PingAll(streams))
		wait(t, "the first connection is open beside the newest", func() bool {
			_, open := l.conns.of(ageing)
			return open > 1
		})
		l.agree(servers, 6, 6)

		l.list(ageing)
		later := l.hold(2, map[string]int{lang.name: 2})
		require.NoError(t, leastconntest.PingAll(streams))
		l.agree(servers, 8, 6)
		require.NoError(t, leastconntest.EndAll(append(streams, later...)))
		l.agree(servers, 0, 6)
	})
}

// TestPeersMaxConnectionAgeGrace: streams that outlive the grace of an aged
// connection break, and are given back.
func TestPeersMaxConnectionAgeGrace(t *testing.T) {
	eachLanguage(t, func(t *testing.T, lang language) {
		ageing := startPeer(t, lang, "--max-age-ms", "500", "--max-age-grace-ms", "200")
		l := dialPeers(t, ageing)
		streams := l.hold(6, map[string]int{lang.name: 6})
		l.counts([]server{ageing}, 6)
		for _, s := range streams {
			// The code depends on whether the server resets streams before it closes their connection.
			require.Error(t, s.Wait())
		}
		l.agree([]server{ageing}, 0)
	})
}

// TestPeersDrain: a server that shuts down gracefully keeps its streams, and
// they are counted for the one that takes its place.
func TestPeersDrain(t *testing.T) {
	eachLanguage(t, func(t *testing.T, lang language) {
		draining, b := startPeer(t, lang), startNodes(t, "b")[0]
		servers := []server{draining, b}
		l := dialPeers(t, draining)
		streams := l.hold(6, map[string]int{lang.name: 6})
		require.Equal(t, 6, draining.Live())
		draining.drain()
		wait(t, lang.name+" takes no more connections", func() bool { return !l.ready(draining) })
		l.counts(servers, 6, 0)
		require.NoError(t, l.Update(endpointsOf(servers)...))
		l.waitReady(b)
		l.hold(4, map[string]int{"b": 4})
		require.NoError(t, leastconntest.PingAll(streams))
		begun, open := l.conns.of(draining)
		require.Equal(t, []int{1, 1}, []int{begun, open}, "connections so far and open")

		restarted := startPeerAt(t, lang, draining.addr)
		l.waitReady(restarted)
		l.counts(servers, 6, 4)
		l.hold(2, map[string]int{"b": 2})
		later := l.hold(2, map[string]int{lang.name: 1, "b": 1})
		l.counts(servers, 7, 7)

		require.NoError(t, leastconntest.EndAll(streams))
		draining.waitDrained()
		l.agree([]server{restarted, b}, 1, 7)
		require.NoError(t, leastconntest.EndAll(later))
		l.agree([]server{restarted, b}, 0, 6)
	})
}

// TestPeersKilled: with a server's process its counts are gone, and the one that
// takes its place begins with none.
func TestPeersKilled(t *testing.T) {
	eachLanguage(t, func(t *testing.T, lang language) {
		killed, b := startPeer(t, lang), startNodes(t, "b")[0]
		servers := []server{killed, b}
		l := dialPeers(t, servers...)
		streams := l.hold(12, map[string]int{lang.name: 6, "b": 6})
		killed.kill()
		for _, s := range streams {
			if s.Node() == lang.name {
				require.Equal(t, codes.Unavailable, status.Code(s.Wait()))
			}
		}
		l.counts(servers, 0, 6) // at once
		l.hold(2, map[string]int{"b": 2})

		killed.start()
		l.waitReady(killed)
		l.hold(8, map[string]int{lang.name: 8})
		l.agree(servers, 8, 8)
	})
}

// TestPeersGoAwayUnderCalls: calls that are under way when a connection ages are
// given back, too, and none fails.
func TestPeersGoAwayUnderCalls(t *testing.T) {
	eachLanguage(t, func(t *testing.T, lang language) {
		ageing, b := startPeer(t, lang, "--max-age-ms", "20"), startNodes(t, "b")[0]
		l := dialPeers(t, ageing, b)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for ctx.Err() == nil {
					_, err := l.Unary(t.Context())
					assert.NoError(t, err)
				}
			})
		}
		wait(t, lang.name+" has aged often", func() bool { begun, _ := l.conns.of(ageing); return begun > 20 })
		cancel()
		callers.Wait()
		l.agree([]server{ageing, b}, 0, 0)
	})
}
