package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// server is a peer, or a node, which is Go's.
type server interface {
	Addr() string
	Name() string
	Live() int
}

// peerLab is a channel to servers of several languages, for as long as the test
// runs.
type peerLab struct {
	*testing.T
	*leastconntest.Channel
	ctx   context.Context // RPCs with it are held
	conns *connections
}

// dialPeers opens a channel and waits until it can use the servers.
func dialPeers(t *testing.T, servers ...server) *peerLab {
	t.Helper()
	l := &peerLab{T: t, conns: newConnections()}
	l.ctx = metadata.AppendToOutgoingContext(t.Context(), "hold", "true")
	var err error
	l.Channel, err = leastconntest.Dial(leastconntest.ChannelConfig{ServiceConfig: withoutPenalty, DialOptions: []grpc.DialOption{
		grpc.WithStatsHandler(l.conns),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond},
			MinConnectTimeout: 20 * time.Second,
		}),
	}})
	require.NoError(t, err)
	t.Cleanup(func() { l.Channel.Close() })
	l.Connect()
	l.list(servers...)
	return l
}

// list has the resolver list exactly the servers and waits until the channel can
// use them.
func (l *peerLab) list(servers ...server) {
	l.Helper()
	require.NoError(l, l.Update(endpointsOf(servers)...))
	for _, s := range servers {
		l.waitReady(s)
	}
}

func endpointsOf(servers []server) []resolver.Endpoint {
	var all []resolver.Endpoint
	for _, s := range servers {
		all = append(all, resolver.Endpoint{Addresses: []resolver.Address{{Addr: s.Addr()}}})
	}
	return all
}

func (l *peerLab) waitReady(s server) {
	l.Helper()
	wait(l.T, s.Name()+" is ready", func() bool { return l.ready(s) })
}

func (l *peerLab) ready(s server) bool {
	ms := node(l.T, l.Channel, s.Addr()).Members
	return len(ms) == 1 && ms[0].Ready
}

// hold opens n streams, one after another, which must go to the servers in want.
func (l *peerLab) hold(n int, want map[string]int) []*leastconntest.Stream {
	l.Helper()
	streams, err := l.OpenN(l.ctx, n)
	require.NoError(l, err)
	require.Equal(l, want, leastconntest.Counts(streams))
	return streams
}

// counts checks what the ledger has in flight on each server.
func (l *peerLab) counts(servers []server, want ...int) {
	l.Helper()
	got := make([]int, len(servers))
	for i, s := range servers {
		got[i] = int(node(l.T, l.Channel, s.Addr()).InFlight)
	}
	require.Equal(l, want, got, "in flight by server")
}

// agree checks the ledger's counts, which the servers must come to see, too.
func (l *peerLab) agree(servers []server, want ...int) {
	l.Helper()
	l.counts(servers, want...)
	for i, s := range servers {
		wait(l.T, s.Name()+" handles what is counted", func() bool { return s.Live() == want[i] })
	}
}
