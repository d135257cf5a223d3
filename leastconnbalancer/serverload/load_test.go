package serverload_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/serverload"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

// pickFirst is the service config of the channels here, which link no other policy.
const pickFirst = `{"loadBalancingConfig":[{"pick_first":{}}]}`

// server is a node that counts its load, and a channel to it.
type server struct {
	*testing.T
	*leastconntest.Node
	load    *serverload.Load
	channel *leastconntest.Channel
}

func start(t *testing.T, opts serverload.Options) *server {
	s := &server{T: t, load: serverload.New(opts)}
	n, err := leastconntest.StartNode(leastconntest.Options{
		Name:          "a",
		ServerOptions: []grpc.ServerOption{grpc.StatsHandler(other{}), grpc.StatsHandler(s.load), grpc.StatsHandler(other{})},
		Register: func(r grpc.ServiceRegistrar) {
			require.NoError(t, s.load.Register(r))
			reflection.Register(r.(reflection.GRPCServer))
		},
	})
	require.NoError(t, err)
	t.Cleanup(n.Close)
	s.Node = n
	s.channel = s.dial()
	return s
}

func (s *server) dial() *leastconntest.Channel {
	c, err := leastconntest.Dial(leastconntest.ChannelConfig{
		ServiceConfig: pickFirst, Endpoints: leastconntest.Endpoints(s.Node),
	})
	require.NoError(s, err)
	s.Cleanup(func() { c.Close() })
	return c
}

// counts waits until so many RPCs are in flight and checks how many have begun.
func (s *server) counts(inFlight, begun int64) {
	s.Helper()
	require.NoError(s, leastconntest.WaitFor(s.Context(), "the RPCs in flight", func() bool { return s.load.InFlight() == inFlight }))
	require.Equal(s, begun, s.load.Begun())
}

// other is another handler, whose contexts lie over a Load's.
type other struct{}

type otherKey struct{}

func (other) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, otherKey{}, 1)
}
func (other) HandleRPC(context.Context, stats.RPCStats)                         {}
func (other) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (other) HandleConn(context.Context, stats.ConnStats)                       {}

// However an RPC ends, it has been in flight until then.
func TestEveryEnd(t *testing.T) {
	for name, end := range map[string]func(*server, *leastconntest.Stream, context.CancelFunc){
		"OK":             func(s *server, rpc *leastconntest.Stream, _ context.CancelFunc) { require.NoError(s, rpc.End()) },
		"server's OK":    func(s *server, _ *leastconntest.Stream, _ context.CancelFunc) { s.EndStreams() },
		"error":          func(s *server, _ *leastconntest.Stream, _ context.CancelFunc) { s.FailStreams(codes.Internal) },
		"cancel":         func(_ *server, _ *leastconntest.Stream, cancel context.CancelFunc) { cancel() },
		"channel closed": func(s *server, _ *leastconntest.Stream, _ context.CancelFunc) { require.NoError(s, s.channel.Close()) },
		"server stopped": func(s *server, _ *leastconntest.Stream, _ context.CancelFunc) { s.Stop() },
		"GOAWAY": func(s *server, rpc *leastconntest.Stream, _ context.CancelFunc) {
			s.GoAway()
			require.NoError(s, rpc.Ping())
			s.counts(1, 1)
			require.NoError(s, rpc.End())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, serverload.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			rpc, err := s.channel.Open(ctx)
			require.NoError(t, err)
			s.counts(1, 1)
			end(s, rpc, cancel)
			s.counts(0, 1)
		})
	}
	for name, prepare := range map[string]func(*server){
		"unary":   func(*server) {},
		"refused": func(s *server) { s.SetFail(codes.ResourceExhausted) },
		"panic":   func(s *server) { s.SetPanic(true) },
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, serverload.Options{})
			prepare(s)
			_, err := s.channel.Unary(t.Context())
			require.Equal(t, name == "unary", err == nil, "%v", err)
			s.counts(0, 1)
		})
	}
	t.Run("deadline", func(t *testing.T) {
		s := start(t, serverload.Options{})
		s.HoldUnary(true)
		for s.load.Begun() == 0 { // it may be over before it is there
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			_, err := s.channel.Unary(ctx)
			require.Error(t, err)
			cancel()
		}
		require.NoError(t, leastconntest.WaitFor(t.Context(), "no RPC to be in flight", func() bool { return s.load.InFlight() == 0 }))
	})
}

// A connection that breaks ends what is in flight on it.
func TestConnectionLost(t *testing.T) {
	s := start(t, serverload.Options{})
	p, err := leastconntest.StartProxy(s.Addr())
	require.NoError(t, err)
	defer p.Close()
	require.NoError(t, s.channel.Update(p.Endpoint()))
	streams, err := s.channel.OpenN(t.Context(), 5)
	require.NoError(t, err)
	s.counts(5, 5)
	p.Reset()
	s.counts(0, 5)
	require.Error(t, streams[0].Wait())
}

// What is no load is not counted: health checks, reflection, reports, and what the server does not know.
func TestWhatIsNoLoad(t *testing.T) {
	s := start(t, serverload.Options{})
	conn := s.channel.Conn()
	check := grpc_health_v1.NewHealthClient(conn)
	_, err := check.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	watch, err := check.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = watch.Recv()
	require.NoError(t, err)
	reflect, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	require.NoError(t, err)
	require.NoError(t, reflect.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}))
	_, err = reflect.Recv()
	require.NoError(t, err)
	require.EqualValues(t, 0, s.report(t.Context()).NamedMetrics["in_flight"])
	err = conn.Invoke(t.Context(), "/no.Service/Call", &grpc_testing.Empty{}, &grpc_testing.Empty{})
	require.Equal(t, codes.Unimplemented, status.Code(err))
	s.counts(0, 0)
	_, err = s.channel.Unary(t.Context())
	require.NoError(t, err)
	s.counts(0, 1)
}

// Nothing is lost while RPCs of many connections end in all ways at once.
func TestManyEnds(t *testing.T) {
	s := start(t, serverload.Options{})
	var all sync.WaitGroup
	for range 8 {
		c := s.dial()
		all.Go(func() {
			for i := range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				rpc, err := c.Open(ctx)
				if err == nil && i%2 == 0 {
					_ = rpc.End()
				}
				if i%20 == 0 {
					s.GoAway()
				}
				if s.load.InFlight() < 0 {
					t.Error("less than none in flight")
				}
				cancel()
			}
		})
	}
	all.Wait()
	require.NoError(t, leastconntest.WaitFor(t.Context(), "all RPCs to be counted", func() bool {
		return s.load.InFlight() == 0 && s.load.Begun() == int64(s.Started())
	}))
}
