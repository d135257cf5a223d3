package leastconnbalancer_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// ending is a way for an RPC to end.
type ending struct {
	name    string
	code    codes.Code
	prepare func(*proxiedRPC) // before the RPC starts, which may then be over at once
	end     func(*proxiedRPC) // once it is under way
}

var endings = []ending{
	{name: "OK", code: codes.OK, end: (*proxiedRPC).complete},
	{name: "error at once", code: codes.Aborted, prepare: func(x *proxiedRPC) { x.nodes[0].SetFail(codes.Aborted) }},
	{name: "cancel", code: codes.Canceled, end: func(x *proxiedRPC) { x.cancel() }},
	{name: "deadline", code: codes.DeadlineExceeded, prepare: func(x *proxiedRPC) { x.ctx = x.within(200 * time.Millisecond) }},
	{name: "server crash", code: codes.Unavailable, end: func(x *proxiedRPC) { x.nodes[0].Stop() }},
	{name: "panic", code: codes.Internal, prepare: func(x *proxiedRPC) {
		x.nodes[0].SetPanic(true)
		x.nodes[0].HoldUnary(false)
	}},
}

// However an RPC of any kind ends, what it was counted for is given back, once.
func TestEveryEndOfEveryKind(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		for _, end := range endings {
			t.Run(kind.String()+"/"+end.name, func(t *testing.T) {
				x := newProxiedRPC(parallelEnv(t), kind, quickly())
				if end.prepare != nil {
					end.prepare(x)
					x.start(0)
				} else {
					x.underWay()
					x.counts(1, 1, 1)
					end.end(x)
				}
				x.ends(end.code)
				x.served(x.nodes, 0, 1, 1)
				x.closed()
			})
		}
	}
}

// A stream is in flight until the client has read its end, cancels, or its context
// ends, whether anybody reads it or not.
func TestStreamNotReadToItsEnd(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	c := e.dial(ns[0])
	ctx, cancel := context.WithCancel(e.ctx)
	for range 6 {
		s, err := c.Client().StreamingOutputCall(ctx, &grpc_testing.StreamingOutputCallRequest{})
		require.NoError(t, err)
		_, err = s.Recv()
		require.NoError(t, err)
	}
	ns[0].EndStreams()
	e.served(ns, 0, 0)
	c.counts(ns, 6, 0)
	c.update(ns...)
	require.Equal(t, map[string]int{"b": 6}, tally(c.calls(6)))
	cancel()
	e.wait("the streams are released", func() bool { return c.snapshot().InFlight == 0 })
	err := context.DeadlineExceeded
	for within := 100 * time.Millisecond; err != nil; within *= 2 { // it may be over before it has begun
		_, err = c.Client().FullDuplexCall(e.within(within))
		require.NoError(t, e.ctx.Err())
	}
	e.wait("the expired stream is released", func() bool { return c.snapshot().InFlight == 0 })
}

// noCreds cannot be had, or not be sent.
type noCreds struct {
	err    error
	secure bool
}

func (c noCreds) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return nil, c.err
}
func (c noCreds) RequireTransportSecurity() bool { return c.secure }

// longHeader is more than a node takes that has a limit of 8 KiB.
type longHeader struct{ noCreds }

func (longHeader) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"long": strings.Repeat("x", 10<<10)}, nil
}

// badCodec cannot write, or not read, messages.
type badCodec struct{ write, read error }

func (badCodec) Name() string                  { return "proto" }
func (c badCodec) Marshal(any) ([]byte, error) { return nil, c.write }
func (c badCodec) Unmarshal([]byte, any) error { return c.read }

// badCompressor cannot write messages.
type badCompressor struct{ encoding.Compressor }

func init() { encoding.RegisterCompressor(badCompressor{}) }

func (badCompressor) Name() string { return "bad" }
func (badCompressor) Compress(io.Writer) (io.WriteCloser, error) {
	return nil, errors.New("cannot compress")
}

// localFailures keep an RPC from being sent or read on this side. What is read wrong
// weighs on the node: it may have been written wrong.
var localFailures = map[string]struct {
	opt    grpc.CallOption
	code   codes.Code
	weighs bool
}{
	"request too large":      {opt: grpc.MaxCallSendMsgSize(100), code: codes.ResourceExhausted},
	"request not written":    {opt: grpc.ForceCodec(badCodec{write: errors.New("cannot write")}), code: codes.Internal},
	"request not compressed": {opt: grpc.UseCompressor("bad"), code: codes.Internal},
	"response not read":      {opt: grpc.ForceCodec(badCodec{read: errors.New("cannot read")}), code: codes.Internal, weighs: true},
	"no credentials":         {opt: grpc.PerRPCCredentials(noCreds{err: errors.New("no token")}), code: codes.Internal},
	"credentials need TLS":   {opt: grpc.PerRPCCredentials(noCreds{secure: true}), code: codes.Unauthenticated},
	"compressor is unknown":  {opt: grpc.UseCompressor("unknown"), code: codes.Internal},
	"header too large":       {opt: grpc.PerRPCCredentials(longHeader{}), code: codes.Internal},
}

// What this side breaks is not the node's fault, as far as gRPC tells the two apart:
// also in a stream that has been answered before.
func TestWhatTheClientBreaksDoesNotWeigh(t *testing.T) {
	t.Parallel()
	for _, k := range twoKinds {
		for name, f := range localFailures {
			t.Run(k.String()+"/"+name, func(t *testing.T) {
				e := parallelEnv(t)
				n, other := e.node("a", grpc.MaxHeaderListSize(8<<10)), e.node("b", grpc.MaxHeaderListSize(8<<10))
				c := e.dialWith(guarded(leastconnbalancer.Config{FailurePenalty: leastconnbalancer.NewDuration(time.Minute)}), n, other)
				require.Equal(t, f.code, codeOf(c.with(k, f.opt)))
				e.wait("it is over", func() bool { return c.snapshot().InFlight == 0 })
				want := 0
				if f.weighs {
					want = 1
				}
				require.EqualValues(t, want, c.snapshot().EndpointSets[0].Penalties)
			})
		}
	}
	t.Run("response too large", func(t *testing.T) {
		e := parallelEnv(t)
		c := e.dialWith(guarded(leastconnbalancer.Config{FailurePenalty: leastconnbalancer.NewDuration(time.Minute)}), e.nodes("a", "b")...)
		require.Equal(t, codes.ResourceExhausted, codeOf(c.with(leastconntest.Unary, grpc.MaxCallRecvMsgSize(1))))
		require.Zero(t, c.snapshot().EndpointSets[0].Penalties)
	})
	t.Run("later in a stream", func(t *testing.T) {
		e := parallelEnv(t)
		c := e.dialWith(guarded(leastconnbalancer.Config{FailurePenalty: leastconnbalancer.NewDuration(time.Minute)}), e.nodes("a", "b")...)
		s, err := c.Client().FullDuplexCall(e.ctx, grpc.MaxCallSendMsgSize(100))
		require.NoError(t, err)
		require.NoError(t, s.Send(&grpc_testing.StreamingOutputCallRequest{ResponseParameters: []*grpc_testing.ResponseParameters{{Size: 1}}}))
		_, err = s.Recv()
		require.NoError(t, err)
		require.Equal(t, codes.ResourceExhausted, codeOf(s.Send(&grpc_testing.StreamingOutputCallRequest{Payload: &grpc_testing.Payload{Body: make([]byte, 1<<10)}})))
		e.wait("it is over", func() bool { return c.snapshot().InFlight == 0 })
		require.Zero(t, c.snapshot().EndpointSets[0].Penalties)
	})
}

// An RPC that fails on this side, before or after it has a stream, is given back
// although the server does not end it; retries change nothing.
func TestRPCsThatFailOnThisSide(t *testing.T) {
	t.Parallel()
	for retries, cfg := range map[string]leastconntest.ChannelConfig{"": quickly(), ", retried": retrying(3)} {
		for _, k := range twoKinds {
			t.Run(k.String()+retries, func(t *testing.T) {
				e := parallelEnv(t)
				n := e.node("a", grpc.MaxHeaderListSize(8<<10))
				p := &recordingPolicy{}
				c := e.dialRecorded(p, cfg, n)
				held, _ := c.hold(2)
				for name, f := range localFailures {
					require.Equal(t, f.code, codeOf(c.with(k, f.opt)), name)
					require.EqualValues(t, 2, c.snapshot().InFlight, name)
					require.NoError(t, n.WaitLive(e.ctx, 2))
				}
				require.NoError(t, leastconntest.EndAll(held))
				require.Equal(t, p.picks.Load(), p.dones.Load(), "Dones for picks")
			})
		}
	}
}

// with makes an RPC of a kind with a request of 1 KiB.
func (c *channel) with(k leastconntest.Kind, opt grpc.CallOption) error {
	body := &grpc_testing.Payload{Body: make([]byte, 1<<10)}
	if k == leastconntest.Unary {
		_, err := c.Client().UnaryCall(c.env.ctx, &grpc_testing.SimpleRequest{Payload: body}, opt)
		return err
	}
	s, err := c.Client().FullDuplexCall(c.env.ctx, opt)
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
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	p := &recordingPolicy{}
	c := e.dialRecorded(p, retrying(3), ns...)
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			for range 100 {
				ctx, cancel := context.WithTimeout(e.ctx, time.Duration(rand.IntN(1000))*time.Microsecond)
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
	e.wait("a Done for each pick", func() bool { return p.picks.Load() == p.dones.Load() && c.snapshot().InFlight == 0 })
	e.served(ns, 0, 0)
}

// What a node does wrong soon after an attempt began weighs on it; what callers do
// does not.
func TestWhatLeavesAPenalty(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rpc  func(*channel, []*leastconntest.Node) error
		want int64
	}{
		"unary fails": {func(c *channel, ns []*leastconntest.Node) error {
			failing(ns...)
			_, err := c.Unary(c.env.ctx)
			return err
		}, 1},
		"stream fails": {func(c *channel, ns []*leastconntest.Node) error {
			held, _ := c.hold(1)
			ns[0].FailStreams(codes.Internal)
			ns[1].FailStreams(codes.Internal)
			return held[0].Wait()
		}, 1},
		"caller's mistake": {func(c *channel, ns []*leastconntest.Node) error {
			ns[0].SetFail(codes.InvalidArgument)
			ns[1].SetFail(codes.InvalidArgument)
			_, err := c.Unary(c.env.ctx)
			return err
		}, 0},
		"connection breaks": {func(c *channel, ns []*leastconntest.Node) error {
			held, _ := c.hold(1)
			for _, n := range ns {
				if n.Name() == held[0].Node() {
					n.Stop()
				}
			}
			return held[0].Wait()
		}, 1},
		"cancel": {func(c *channel, ns []*leastconntest.Node) error {
			ctx, cancel := context.WithCancel(c.env.ctx)
			s, _ := c.Open(ctx)
			cancel()
			return s.Wait()
		}, 0},
		"deadline": {func(c *channel, ns []*leastconntest.Node) error {
			ns[0].HoldUnary(true)
			ns[1].HoldUnary(true)
			_, err := c.Unary(c.env.within(100 * time.Millisecond))
			return err
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := parallelEnv(t)
			ns := e.nodes("a", "b")
			cfg := guarded(leastconnbalancer.Config{FailurePenalty: leastconnbalancer.NewDuration(time.Minute)})
			c := e.dialWith(cfg, ns...)
			require.Error(t, tt.rpc(c, ns))
			s := c.snapshot()
			require.Zero(t, s.InFlight)
			require.Equal(t, tt.want, s.Endpoints[0].Penalty+s.Endpoints[1].Penalty)
			require.EqualValues(t, tt.want, s.EndpointSets[0].Penalties)
		})
	}
}
