package leastconnbalancer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// attemptLog is which nodes saw the attempts of an RPC, by its id.
type attemptLog struct {
	mu   sync.Mutex
	seen map[string][]string
}

// server lets a node note each attempt and fail most of them.
func (a *attemptLog) server(node string) grpc.ServerOption {
	return grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		for _, id := range md.Get("rpc") {
			a.mu.Lock()
			a.seen[id] = append(a.seen[id], node)
			a.mu.Unlock()
		}
		if rand.IntN(10) < 7 {
			return nil, status.Error(codes.Unavailable, "most fail")
		}
		return handler(ctx, req)
	})
}

// Picks, attempts at the servers and Dones are the same in number; no attempt
// of an RPC goes to a node that an earlier one has been at.
func TestRetriesOverNodesThatFailAtRandom(t *testing.T) {
	l := newLab(t)
	log := &attemptLog{seen: map[string][]string{}}
	var ns []*leastconntest.Node
	for _, name := range names(4) {
		ns = append(ns, l.node(leastconntest.Options{Name: name, ServerOptions: []grpc.ServerOption{log.server(name)}}))
	}
	p := &parent{}
	c := l.dialParent(p, retrying(4), ns...)
	stop := c.watch(valid)
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for j := range 25 {
				_, _ = c.Unary(metadata.AppendToOutgoingContext(l.ctx, "rpc", fmt.Sprint(i, "-", j)))
			}
		})
	}
	callers.Wait()
	stop()

	require.Len(t, log.seen, 200, "RPCs")
	attempts := 0
	for id, nodes := range log.seen {
		require.Len(t, tally(nodes), len(nodes), "RPC %s was at nodes %v", id, nodes)
		attempts += len(nodes)
	}
	require.Greater(t, attempts, 300, "most RPCs were retried")
	require.EqualValues(t, attempts, p.picks.Load(), "picks")
	require.EqualValues(t, attempts, p.dones.Load(), "Dones")
	c.counts(ns, 0, 0, 0, 0)
	l.served(ns, 0, 0, 0, 0)
}
