package orcaload

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	v3orcaservicegrpc "github.com/cncf/xds/go/xds/service/orca/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/serverload"
)

// Of two channels one asks each server, as often as configured. When it goes, the other one does.
func TestOneStreamPerServerAndProcess(t *testing.T) {
	a, b := serve(t, well), serve(t, well)
	c1, c2 := dial(t, t.Name(), config, a, b), dial(t, t.Name(), config, a, b)
	require.NoError(t, c1.WaitServed(t.Context(), a.Node, b.Node))
	require.NoError(t, c2.WaitServed(t.Context(), a.Node, b.Node))
	hears(t, a, b)
	for _, s := range []*server{a, b} {
		opened, open, most := s.streams()
		require.Equal(t, []int{1, 1, 1}, []int{opened, open, most})
		require.Equal(t, []time.Duration{100 * time.Millisecond}, s.asked)
	}
	require.EqualValues(t, 2, others(c1))
	require.NoError(t, c1.Close())
	c3 := dial(t, t.Name(), config, b)
	hears(t, a, b)
	require.NoError(t, c2.Close())
	hears(t, b)
	wait(t, "one stream", func() bool { _, open, _ := b.streams(); return open == 1 })
	require.NoError(t, c3.Close())
	for _, s := range []*server{a, b} {
		wait(t, "no stream", func() bool { _, open, _ := s.streams(); return open == 0 })
	}
}

// Another load is asked for on its own.
func TestOneStreamPerResourceKey(t *testing.T) {
	a := serve(t, well)
	dial(t, t.Name()+"1", config, a)
	dial(t, t.Name()+"2", config, a)
	wait(t, "two streams", func() bool { _, open, _ := a.streams(); return open == 2 })
}

// tagCounter counts the RPCs to ORCA's service.
type tagCounter struct {
	stats.Handler // nil; embedded because the interface demands it
	asked         atomic.Int64
}

func (c *tagCounter) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if strings.HasPrefix(info.FullMethodName, "/xds.service.orca.v3.") {
		c.asked.Add(1)
	}
	return ctx
}
func (*tagCounter) HandleRPC(context.Context, stats.RPCStats)                         {}
func (*tagCounter) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*tagCounter) HandleConn(context.Context, stats.ConnStats)                       {}

// A server that does not know the service is asked once on each connection, and the stream's room is the
// RPCs' again.
func TestServerWithoutORCA(t *testing.T) {
	counter := &tagCounter{}
	a := serve(t, nil, grpc.StatsHandler(counter))
	c := dial(t, "", config, a)
	for asked := range int64(3) {
		wait(t, "the server is asked", func() bool { return counter.asked.Load() == asked+1 })
		wait(t, "the stream is over", func() bool { return others(c) == 0 })
		_, err := c.Unary(t.Context())
		require.NoError(t, err)
		a.GoAway()
	}
}

// A server that takes the stream and says nothing holds up nobody.
func TestServerHangs(t *testing.T) {
	a := serve(t, hangs)
	c := dial(t, "", config, a)
	wait(t, "the server is asked", func() bool { opened, _, _ := a.streams(); return opened == 1 })
	_, err := c.Unary(t.Context())
	require.NoError(t, err)
	a.GoAway()
	wait(t, "the server is asked again", func() bool { opened, open, _ := a.streams(); return opened == 2 && open == 1 })
	require.NoError(t, c.UpdateConfig(strings.ReplaceAll(config, "100ms", "200ms"), a.Endpoint()))
	wait(t, "the server is asked again", func() bool { opened, open, _ := a.streams(); return opened == 3 && open == 1 })
	require.NoError(t, c.Close())
	wait(t, "the stream is over", func() bool { _, open, _ := a.streams(); return open == 0 })
}

// A stream that the server ends is begun again.
func TestStreamEnds(t *testing.T) {
	for _, code := range []codes.Code{codes.OK, codes.Internal} {
		a := serve(t, func(s *server, stream v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsServer) error {
			_ = stream.Send(report(float64(s.says)))
			return status.Error(code, "")
		})
		dial(t, "", config, a)
		wait(t, "reports of two streams", func() bool { return heardTimes(a.says) > 1 })
	}
}

// Reports go on on the next connection: after a GOAWAY, a crash and a restart.
func TestReconnects(t *testing.T) {
	a := serve(t, well)
	c := dial(t, "", config, a)
	hears(t, a)
	held, err := c.Open(t.Context())
	require.NoError(t, err)
	a.GoAway()
	wait(t, "the next stream", func() bool { opened, open, _ := a.streams(); return opened == 2 && open == 1 })
	hears(t, a)
	require.NoError(t, held.Ping())
	require.NoError(t, a.Restart())
	wait(t, "the next stream", func() bool { opened, open, _ := a.streams(); return opened == 3 && open == 1 })
	hears(t, a)
}

// Health checks and reports go on beside each other, also while the server is not to be used.
func TestReportsBesideHealthChecks(t *testing.T) {
	a := serve(t, well)
	c := dial(t, "", strings.Replace(config, "}]", `}],"healthCheckConfig":{"serviceName":""}`, 1), a)
	require.NoError(t, c.WaitServed(t.Context(), a.Node))
	hears(t, a)
	require.EqualValues(t, 2, others(c))
	a.SetServing(false)
	hears(t, a)
	a.SetServing(true)
	require.NoError(t, c.WaitServed(t.Context(), a.Node))
}

// What cannot be is passed over, and what comes after it is not.
func TestGarbage(t *testing.T) {
	before := heardTimes(math.MaxInt32)
	a := serve(t, func(s *server, stream v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsServer) error {
		for _, v := range []float64{math.NaN(), -1, math.Inf(1), math.Inf(-1), 1e300, 1 << 31, 5e-324} {
			if err := stream.Send(report(v)); err != nil {
				return err
			}
			if err := stream.Send(&v3orcapb.OrcaLoadReport{}); err != nil {
				return err
			}
		}
		return well(s, stream)
	})
	c := dial(t, "", config, a)
	hears(t, a)
	require.Equal(t, before, heardTimes(math.MaxInt32))
	_, err := c.Unary(t.Context())
	require.NoError(t, err)
}

// The two sides of this module together.
func TestWithServerload(t *testing.T) {
	load := serverload.New(serverload.Options{})
	n, err := leastconntest.StartNode(leastconntest.Options{
		ServerOptions: []grpc.ServerOption{grpc.StatsHandler(load)},
		Register:      func(r grpc.ServiceRegistrar) { require.NoError(t, load.Register(r)) },
	})
	require.NoError(t, err)
	defer n.Close()
	c := dial(t, "", config, &server{Node: n})
	before := heardTimes(1003)
	held, err := c.OpenN(t.Context(), 1003)
	require.NoError(t, err)
	wait(t, "the load is told", func() bool { return heardTimes(1003) > before+1 })
	require.NoError(t, leastconntest.EndAll(held))
	n.GoAway()
	require.NoError(t, c.WaitServed(t.Context(), n), "a server that stops gracefully does not wait for its reports")
}

// Channels open, close, and servers hang up, while all report: nothing is left.
func TestAllAtOnce(t *testing.T) {
	servers := []*server{serve(t, well), serve(t, hangs), serve(t, nil)}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for k := range 15 {
				use := slices.Clone(servers)
				slices.Reverse(use[:1+(i+k)%3])
				c, err := leastconntest.Dial(leastconntest.ChannelConfig{ServiceConfig: config, Target: t.Name(), Endpoints: leastconntest.Endpoints(use[0].Node, use[1].Node)})
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = c.Unary(t.Context())
				use[k%2].GoAway()
				_, _ = c.Unary(t.Context())
				_ = c.UpdateNodes(use[1].Node, use[2].Node)
				_, _ = c.Unary(t.Context())
				c.Close()
			}
		})
	}
	all.Wait()
	for _, s := range servers {
		wait(t, "no stream", func() bool { _, open, _ := s.streams(); return open == 0 })
	}
}
