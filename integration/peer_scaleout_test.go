package integration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// everyPeer starts a server of each language and one of Go, for as long as the
// test runs.
func everyPeer(t *testing.T) []server {
	t.Helper()
	servers := []server{startNodes(t, "go")[0]}
	for _, lang := range languages {
		servers = append(servers, startPeer(t, lang))
	}
	return servers
}

// TestPeersScaleOut: whatever servers are written in, one that joins takes the
// next streams, exactly, and streams that end give their counts back.
func TestPeersScaleOut(t *testing.T) {
	for first := range len(languages) + 1 {
		t.Run(fmt.Sprint("from server ", first), func(t *testing.T) {
			servers := everyPeer(t)
			scaleOut(t, slices.Concat(servers[first:], servers[:first]))
		})
	}
}

// scaleOut begins with two of four servers.
func scaleOut(t *testing.T, servers []server) {
	a, b, c, d := servers[0].Name(), servers[1].Name(), servers[2].Name(), servers[3].Name()
	l := dialPeers(t, servers[:2]...)
	streams := l.hold(4, map[string]int{a: 2, b: 2})
	l.list(servers[:3]...)
	streams = append(streams, l.hold(2, map[string]int{c: 2})...)
	l.list(servers...)
	streams = append(streams, l.hold(2, map[string]int{d: 2})...)
	streams = append(streams, l.hold(4, map[string]int{a: 1, b: 1, c: 1, d: 1})...)
	l.agree(servers, 3, 3, 3, 3)
	require.NoError(t, leastconntest.PingAll(streams))

	for i, s := range servers {
		l.endFromEitherSide(streams, s)
		want := []int{3, 3, 3, 3}
		want[i] = 0
		l.agree(servers, want...)
		streams = slices.DeleteFunc(streams, func(held *leastconntest.Stream) bool { return held.Node() == s.Name() })
		streams = append(streams, l.hold(3, map[string]int{s.Name(): 3})...)
	}
	l.agree(servers, 3, 3, 3, 3)
	require.NoError(t, leastconntest.EndAll(streams))
	l.agree(servers, 0, 0, 0, 0)
}

// endFromEitherSide ends a server's streams: one from the client, one by
// cancelling, the others from the server.
func (l *peerLab) endFromEitherSide(streams []*leastconntest.Stream, s server) {
	l.Helper()
	var held []*leastconntest.Stream
	for _, stream := range streams {
		if stream.Node() == s.Name() {
			held = append(held, stream)
		}
	}
	require.NoError(l, held[0].End())
	held[1].Cancel()
	endHeld(s, codes.Aborted)
	for _, stream := range held[2:] {
		require.Equal(l, codes.Aborted, status.Code(stream.Wait()))
	}
}

// endHeld ends the streams that a server holds with a code.
func endHeld(s server, code codes.Code) {
	switch s := s.(type) {
	case *peer:
		s.end(code)
	case *leastconntest.Node:
		s.FailStreams(code)
	}
}
