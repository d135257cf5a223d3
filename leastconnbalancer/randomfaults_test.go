package leastconnbalancer_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Faults of all sorts at random, under RPCs of all kinds: each pick is given
// back, and in the end everything is at 0, here and at the servers.
func TestNetworkFailsAtRandom(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c")
	proxies := []*leastconntest.Proxy{e.proxied(ns[0]), e.proxied(ns[1])}
	p := &recordingPolicy{}
	cfg := retrying(3)
	cfg.Endpoints = []resolver.Endpoint{proxies[0].Endpoint(), proxies[1].Endpoint(), ns[2].Endpoint()}
	c := e.dialRecorded(p, cfg, ns[2])
	stop := c.watch(valid)
	callers := e.workers(16, func(ctx context.Context, i int) error { return c.atRandom(ctx, kinds[i%len(kinds)]) })
	for range 40 {
		spoil(proxies[rand.IntN(2)])
		callers.goOn()
	}
	callers.stop()
	stop()
	require.Greater(t, callers.done.Load(), callers.failed.Load())
	e.wait("each pick is given back", func() bool { return p.picks.Load() == p.dones.Load() && c.snapshot().InFlight == 0 })
	for _, p := range proxies {
		p.Heal()
		before := p.Accepted()
		p.Reset()
		e.wait("the node is ready again", func() bool { return p.Accepted() > before && c.readyAt(p.Endpoint()) })
	}
	e.served(ns, 0, 0, 0)
	_, by := c.hold(9)
	require.Equal(t, map[string]int{"a": 3, "b": 3, "c": 3}, by)
}

// spoil adds or takes back a fault.
func spoil(p *leastconntest.Proxy) {
	switch rand.IntN(8) {
	case 0:
		p.Blackhole(true)
	case 1:
		p.HalfOpen(leastconntest.Direction(rand.IntN(2)), true)
	case 2:
		p.Refuse(rand.IntN(2) == 0)
	case 3:
		p.SetDelay(time.Duration(rand.IntN(20)) * time.Millisecond)
	case 4:
		p.SetRate(rand.IntN(100_000))
	case 5:
		p.Heal()
	default:
		p.Reset()
	}
}

// atRandom makes an RPC of the kind, which its deadline or the caller may end
// early.
func (c *channel) atRandom(ctx context.Context, k leastconntest.Kind) error {
	deadline := time.Duration(1+rand.IntN(100)) * time.Millisecond
	if rand.IntN(4) == 0 {
		deadline = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	body := &grpc_testing.Payload{Body: make([]byte, rand.IntN(2*window))}
	wait := grpc.WaitForReady(rand.IntN(2) == 0)
	switch k {
	case leastconntest.ClientStream:
		s, err := c.Client().StreamingInputCall(ctx, wait)
		if err != nil {
			return err
		}
		_ = s.Send(&grpc_testing.StreamingInputCallRequest{Payload: body})
		_, err = s.CloseAndRecv()
		return err
	case leastconntest.ServerStream:
		s, err := c.Client().StreamingOutputCall(ctx, &grpc_testing.StreamingOutputCallRequest{Payload: body}, wait)
		if err != nil {
			return err
		}
		_, err = s.Recv()
		cancel()
		_ = drain(s.Recv)
		return err
	case leastconntest.Bidi:
		s, err := c.Open(ctx, wait)
		if err != nil {
			return err
		}
		defer s.Cancel()
		return s.Ping()
	default:
		_, err := c.Client().UnaryCall(ctx, &grpc_testing.SimpleRequest{Payload: body}, wait)
		return err
	}
}
