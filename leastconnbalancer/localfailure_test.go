package leastconnbalancer_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// noCreds cannot be had, or not be sent.
type noCreds struct {
	err    error
	secure bool
}

func (c noCreds) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return nil, c.err
}

func (c noCreds) RequireTransportSecurity() bool { return c.secure }

// badCodec cannot write, or not read, messages.
type badCodec struct{ write, read error }

func (badCodec) Name() string { return "proto" }

func (c badCodec) Marshal(any) ([]byte, error) { return nil, c.write }

func (c badCodec) Unmarshal([]byte, any) error { return c.read }

// localFailures keep an RPC from being sent or read on this side.
var localFailures = map[string]struct {
	opt  grpc.CallOption
	code codes.Code
}{
	"request too large":     {grpc.MaxCallSendMsgSize(100), codes.ResourceExhausted},
	"request not written":   {grpc.ForceCodec(badCodec{write: errors.New("cannot write")}), codes.Internal},
	"response not read":     {grpc.ForceCodec(badCodec{read: errors.New("cannot read")}), codes.Internal},
	"no credentials":        {grpc.PerRPCCredentials(noCreds{err: errors.New("no token")}), codes.Internal},
	"credentials need TLS":  {grpc.PerRPCCredentials(noCreds{secure: true}), codes.Unauthenticated},
	"compressor is unknown": {grpc.UseCompressor("unknown"), codes.Internal},
	"header too large":      {grpc.PerRPCCredentials(longHeader{}), codes.Internal},
}

// longHeader is more than a node takes that has a limit of 8 KiB.
type longHeader struct{ noCreds }

func (longHeader) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"long": strings.Repeat("x", 10<<10)}, nil
}

// An RPC that fails on this side, before or after it has a stream, is given back
// although the server does not end it; retries change nothing.
func TestRPCsThatFailOnThisSide(t *testing.T) {
	for name, f := range localFailures {
		for config, serviceConfig := range map[string]string{"": "", ", retried": retrying(3).ServiceConfig} {
			for _, k := range []leastconntest.Kind{leastconntest.Unary, leastconntest.Bidi} {
				t.Run(name+"/"+k.String()+config, func(t *testing.T) {
					l := newLab(t)
					n := l.node(leastconntest.Options{Name: "a", ServerOptions: []grpc.ServerOption{grpc.MaxHeaderListSize(8 << 10)}})
					p := &parent{}
					c := l.dialParent(p, leastconntest.ChannelConfig{ServiceConfig: serviceConfig}, n)
					held, _ := c.hold(2)
					require.Equal(t, f.code, codeOf(c.with(k, f.opt)))
					c.counts([]*leastconntest.Node{n}, 2)
					require.NoError(t, n.WaitLive(l.ctx, 2))
					require.NoError(t, leastconntest.EndAll(held))
					require.Equal(t, p.picks.Load(), p.dones.Load(), "Dones for picks")
				})
			}
		}
	}
}

// with makes an RPC of a kind with a request of 1 KiB.
func (c *channel) with(k leastconntest.Kind, opt grpc.CallOption) error {
	body := &grpc_testing.Payload{Body: make([]byte, 1<<10)}
	if k == leastconntest.Unary {
		_, err := c.Client().UnaryCall(c.lab.ctx, &grpc_testing.SimpleRequest{Payload: body}, opt)
		return err
	}
	s, err := c.Client().FullDuplexCall(c.lab.ctx, opt)
	if err != nil {
		return err
	}
	if err := s.Send(&grpc_testing.StreamingOutputCallRequest{Payload: body}); err != nil {
		return err
	}
	_ = s.CloseSend()
	return drain(s.Recv)
}

// RPCs that are over before they have begun, or at any moment after, are given
// back.
func TestTinyDeadlines(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	p := &parent{}
	c := l.dialParent(p, retrying(3), ns...)
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			for range 100 {
				ctx, cancel := context.WithTimeout(l.ctx, time.Duration(rand.IntN(1000))*time.Microsecond)
				ctx = metadata.AppendToOutgoingContext(ctx, "some", "header")
				if i%2 == 0 {
					_, _ = c.Unary(ctx)
				} else if s, err := c.Client().FullDuplexCall(ctx); err == nil {
					_ = s.Send(&grpc_testing.StreamingOutputCallRequest{})
				}
				cancel()
			}
		})
	}
	callers.Wait()
	l.wait("all RPCs are given back", func() bool { return c.snapshot().InFlight == 0 })
	l.wait("a Done for each pick", func() bool { return p.picks.Load() == p.dones.Load() })
	require.Positive(t, p.picks.Load())
	l.served(ns, 0, 0)
}
