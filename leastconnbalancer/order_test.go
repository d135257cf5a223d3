package leastconnbalancer_test

import (
	"context"
	"slices"
	"sync"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// order is that in which RPCs have reached their nodes, by id.
type order struct {
	mu  sync.Mutex
	ids []string
}

// nodes starts a node for each name that notes the RPCs it sees.
func (o *order) nodes(l *lab, names ...string) (nodes []*leastconntest.Node) {
	l.Helper()
	note := grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		o.mu.Lock()
		o.ids = append(o.ids, md.Get("rpc")...)
		o.mu.Unlock()
		return handler(ctx, req)
	})
	for _, name := range names {
		nodes = append(nodes, l.node(leastconntest.Options{Name: name, ServerOptions: []grpc.ServerOption{note}}))
	}
	return nodes
}

// send makes an RPC that the test goes on without.
func (o *order) send(c *channel, id string, opts ...grpc.CallOption) <-chan result {
	return c.lab.async(func() (string, error) {
		return c.Unary(metadata.AppendToOutgoingContext(c.lab.ctx, "rpc", id), opts...)
	})
}

// seen returns the ids so far.
func (o *order) seen() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.ids)
}

// have waits until as many RPCs have reached nodes, and checks that they are
// these.
func (o *order) have(l *lab, ids ...string) {
	l.Helper()
	l.wait("RPCs reach their nodes", func() bool { return len(o.seen()) >= len(ids) })
	require.ElementsMatch(l, ids, o.seen())
}
