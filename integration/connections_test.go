package integration

import (
	"context"
	"sync"

	"google.golang.org/grpc/stats"
)

// connections is a stats handler that counts a channel's connections by their
// server's address.
type connections struct {
	mu    sync.Mutex
	begun map[string]int
	ended map[string]int
}

func newConnections() *connections {
	return &connections{begun: make(map[string]int), ended: make(map[string]int)}
}

type addrKey struct{}

func (c *connections) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, addrKey{}, info.RemoteAddr.String())
}

func (c *connections) HandleConn(ctx context.Context, event stats.ConnStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	addr := ctx.Value(addrKey{}).(string)
	switch event.(type) {
	case *stats.ConnBegin:
		c.begun[addr]++
	case *stats.ConnEnd:
		c.ended[addr]++
	}
}

func (c *connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (c *connections) HandleRPC(context.Context, stats.RPCStats)                       {}

// of returns how many connections to a server there have been, and how many of
// them are open.
func (c *connections) of(s server) (begun, open int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun[s.Addr()], c.begun[s.Addr()] - c.ended[s.Addr()]
}
