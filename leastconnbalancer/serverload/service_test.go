package serverload_test

import (
	"context"
	"testing"
	"time"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	v3orcaservicegrpc "github.com/cncf/xds/go/xds/service/orca/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/orca"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/serverload"
)

// reports asks for reports.
func (s *server) reports(ctx context.Context, interval *durationpb.Duration) v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsClient {
	s.Helper()
	stream, err := v3orcaservicegrpc.NewOpenRcaServiceClient(s.channel.Conn()).
		StreamCoreMetrics(ctx, &v3orcaservicegrpc.OrcaLoadReportRequest{ReportInterval: interval})
	require.NoError(s, err)
	return stream
}

// report returns the first report of a stream.
func (s *server) report(ctx context.Context) *v3orcapb.OrcaLoadReport {
	s.Helper()
	r, err := s.reports(ctx, durationpb.New(time.Hour)).Recv()
	require.NoError(s, err)
	return r
}

// A client is told at once, and then again and again, what is in flight.
func TestReportsFollowTheLoad(t *testing.T) {
	s := start(t, serverload.Options{})
	stream := s.reports(t.Context(), durationpb.New(100*time.Millisecond))
	until := func(want float64) {
		for {
			r, err := stream.Recv()
			require.NoError(t, err)
			if r.NamedMetrics["in_flight"] == want {
				return
			}
		}
	}
	until(0)
	held, err := s.channel.OpenN(t.Context(), 3)
	require.NoError(t, err)
	until(3)
	require.NoError(t, held[0].End())
	until(2)
	s.GoAway() // the stream of reports goes on, on the old connection
	until(2)
}

// What the application records goes along; its own figures of what the Load measures are the Load's, but
// for a rate.
func TestApplicationMetricsGoAlong(t *testing.T) {
	recorder, begun := orca.NewServerMetricsRecorder(), time.Now()
	s := start(t, serverload.Options{Metrics: recorder})
	rpc, err := s.channel.Open(t.Context())
	require.NoError(t, err)
	recorder.SetCPUUtilization(0.5)
	recorder.SetMemoryUtilization(0.25)
	recorder.SetNamedUtilization("disk", 0.75)
	r := s.report(t.Context())
	require.Equal(t, 0.5, r.CpuUtilization)
	require.Equal(t, 0.25, r.MemUtilization)
	require.Zero(t, r.ApplicationUtilization)
	require.Equal(t, map[string]float64{"disk": 0.75}, r.Utilization)
	require.Equal(t, map[string]float64{"in_flight": 1}, r.NamedMetrics)
	require.LessOrEqual(t, r.RpsFractional, 1.0, "one in the second that a rate takes at least")
	require.GreaterOrEqual(t, r.RpsFractional, 1/max(1, time.Since(begun).Seconds()))
	recorder.SetQPS(77)
	require.Equal(t, 77.0, s.report(t.Context()).RpsFractional)
	require.NoError(t, rpc.End())
}

// provider provides what a recorder would not.
type provider struct{ metrics *orca.ServerMetrics }

func (p provider) ServerMetrics() *orca.ServerMetrics { return p.metrics }

// What a provider returns is its own, and may lack everything.
func TestProviders(t *testing.T) {
	require.EqualValues(t, 0, serverload.New(serverload.Options{Metrics: provider{}}).ServerMetrics().NamedMetrics["in_flight"])
	shared := &orca.ServerMetrics{CPUUtilization: 3, QPS: -1}
	load := serverload.New(serverload.Options{Metrics: provider{shared}})
	require.Equal(t, 3.0, load.ServerMetrics().CPUUtilization)
	require.Equal(t, &orca.ServerMetrics{CPUUtilization: 3, QPS: -1}, shared)
	shared.NamedMetrics = map[string]float64{"in_flight": 99, "mine": 1}
	require.Equal(t, map[string]float64{"in_flight": 0, "mine": 1}, load.ServerMetrics().NamedMetrics)
	require.Equal(t, map[string]float64{"in_flight": 99, "mine": 1}, shared.NamedMetrics)
}

// The service is there once: grpc.Server would end the program.
func TestRegisterBesideORCA(t *testing.T) {
	server := grpc.NewServer()
	defer server.Stop()
	load := serverload.New(serverload.Options{})
	require.NoError(t, orca.Register(server, orca.ServiceOptions{ServerMetricsProvider: load}))
	require.EqualError(t, load.Register(server),
		"serverload: the server has service xds.service.orca.v3.OpenRcaService already: want one of Register and orca.Register, not both")
}
