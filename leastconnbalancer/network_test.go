package leastconnbalancer_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// A node that hangs and is not known to takes its share, since what hangs there
// counts, and no more.
func TestHangingNodeTakesItsShareAndNoMore(t *testing.T) {
	x := newCrossing(t, leastconntest.Bidi, quickly(), leastconntest.Options{})
	x.proxy.Blackhole(true)
	opened := make(chan string)
	var callers sync.WaitGroup
	for range 10 {
		callers.Go(func() {
			if s, err := x.channel.Open(x.ctx); err == nil {
				opened <- s.Node()
				_ = s.Wait()
			}
		})
	}
	var by []string
	for range 6 {
		by = append(by, <-opened)
	}
	require.Equal(t, map[string]int{"b": 3, "c": 3}, tally(by))
	x.wait("all are picked", func() bool { return x.channel.snapshot().InFlight == 12 })
	x.counts(4, 4, 4)
	x.cancel()
	callers.Wait()
	x.counts(0, 1, 1)
	x.recovers()
}

// A connection that drains after a GOAWAY, and one in use, break together.
func TestDrainingConnectionBreaks(t *testing.T) {
	l := newLab(t)
	n := l.nodes("a")[0]
	p := l.proxied(n)
	c := l.dialWith(leastconntest.ChannelConfig{Endpoints: []resolver.Endpoint{p.Endpoint()}})
	for i := range 5 {
		old, _ := c.hold(3)
		before := p.Accepted()
		n.GoAway()
		l.wait("a new connection", func() bool { return p.Accepted() == before+1 && c.readyAt(p.Endpoint()) })
		streams, _ := c.hold(2)
		require.NoError(t, leastconntest.PingAll(append(streams, old...)))
		require.Equal(t, 5, c.inFlightAt(p.Endpoint()), "round %d", i)
		c.unary() // so the connection was of use, and the next one comes at once
		p.Reset()
		for _, s := range append(streams, old...) {
			require.Equal(t, codes.Unavailable, codeOf(s.Wait()))
		}
		require.Equal(t, 0, c.inFlightAt(p.Endpoint()))
		require.NoError(t, n.WaitLive(l.ctx, 0))
	}
}

// outcomes counts how RPCs ended.
type outcomes struct{ ok, failed atomic.Int64 }

// Faults of all sorts at random, under RPCs of all kinds: each pick is given
// back, and in the end everything is at 0, here and at the servers.
func TestNetworkFailsAtRandom(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	proxies := []*leastconntest.Proxy{l.proxied(ns[0]), l.proxied(ns[1])}
	p := &parent{}
	cfg := quickly()
	cfg.ServiceConfig = retrying(3).ServiceConfig
	cfg.Endpoints = []resolver.Endpoint{proxies[0].Endpoint(), proxies[1].Endpoint(), ns[2].Endpoint()}
	c := l.dialParent(p, cfg, ns[2])
	stop := c.watch(valid)
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	var callers sync.WaitGroup
	var seen outcomes
	for i := range 16 {
		callers.Go(func() {
			for ctx.Err() == nil {
				seen.note(c.atRandom(kinds[i%len(kinds)]))
			}
		})
	}
	for range 40 {
		spoil(proxies[rand.IntN(2)])
		ok, failed := seen.ok.Load(), seen.failed.Load()
		l.wait("RPCs end", func() bool { return seen.ok.Load() > ok+10 || seen.failed.Load() > failed+10 })
	}
	cancel()
	callers.Wait()
	stop()
	require.Positive(t, seen.ok.Load())
	require.Positive(t, seen.failed.Load())
	require.Equal(t, p.picks.Load(), p.dones.Load(), "Dones for picks")
	require.Zero(t, c.snapshot().InFlight)
	for _, p := range proxies {
		p.Heal()
		before := p.Accepted()
		p.Reset()
		l.wait("the node is ready again", func() bool { return p.Accepted() > before && c.readyAt(p.Endpoint()) })
	}
	l.served(ns, 0, 0, 0)
	_, by := c.hold(9)
	require.Equal(t, map[string]int{"a": 3, "b": 3, "c": 3}, by)
}

func (o *outcomes) note(err error) {
	if err != nil {
		o.failed.Add(1)
	} else {
		o.ok.Add(1)
	}
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
func (c *channel) atRandom(k leastconntest.Kind) error {
	ctx, cancel := context.WithTimeout(c.lab.ctx, time.Duration(1+rand.IntN(100))*time.Millisecond)
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
		if err := s.Ping(); err != nil {
			s.Cancel()
			return err
		}
		return s.End()
	default:
		_, err := c.Client().UnaryCall(ctx, &grpc_testing.SimpleRequest{Payload: body}, wait)
		return err
	}
}
