package orcaload

import (
	"sync"
	"testing"
	"time"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	v3orcaservicegrpc "github.com/cncf/xds/go/xds/service/orca/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/reports"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
	"github.com/leastconn/grpc-leastconn/state/statetest"

	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// heard are the numbers in flight that connections of the process were told. Each server of a test says
// another one.
var heard = struct {
	mu    sync.Mutex
	times map[int64]int
}{times: map[int64]int{}}

func TestMain(m *testing.M) {
	reports.Register(func(conn balancer.SubConn, interval time.Duration, report reports.Report) func() {
		return listen(conn, interval, func(inFlight int64, rps float64) {
			heard.mu.Lock()
			heard.times[inFlight]++
			heard.mu.Unlock()
			report(inFlight, rps)
		})
	})
	statetest.Main(m)
}

func heardTimes(inFlight int64) int {
	heard.mu.Lock()
	defer heard.mu.Unlock()
	return heard.times[inFlight]
}

// wait fails the test when the condition does not come true.
func wait(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.NoError(t, leastconntest.WaitFor(t.Context(), what, condition))
}

// server is a node that reports what a test says.
type server struct {
	v3orcaservicegrpc.UnimplementedOpenRcaServiceServer
	*leastconntest.Node
	says int64 // in flight
	talk func(*server, v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsServer) error

	mu           sync.Mutex
	opened, open int // streams of reports, ever and now
	most         int // open at one time
	asked        []time.Duration
	said         int // reports
}

var said int64 // guarded by tests being one after another

// serve starts a server that talks on each stream of reports.
func serve(t *testing.T, talk func(*server, v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsServer) error, opts ...grpc.ServerOption) *server {
	said++
	s := &server{says: said, talk: talk}
	n, err := leastconntest.StartNode(leastconntest.Options{ServerOptions: opts, Register: func(r grpc.ServiceRegistrar) {
		if talk != nil {
			v3orcaservicegrpc.RegisterOpenRcaServiceServer(r, s)
		}
	}})
	require.NoError(t, err)
	t.Cleanup(n.Close)
	s.Node = n
	return s
}

func (s *server) StreamCoreMetrics(req *v3orcaservicegrpc.OrcaLoadReportRequest, stream v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsServer) error {
	s.mu.Lock()
	s.opened++
	s.open++
	s.most = max(s.most, s.open)
	s.asked = append(s.asked, req.GetReportInterval().AsDuration())
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.open--
		s.mu.Unlock()
	}()
	return s.talk(s, stream)
}

// streams returns how many streams of reports there were, are, and were at one time.
func (s *server) streams() (opened, open, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened, s.open, s.most
}

// report is one with a number in flight.
func report(inFlight float64) *v3orcapb.OrcaLoadReport {
	return &v3orcapb.OrcaLoadReport{NamedMetrics: map[string]float64{"in_flight": inFlight}}
}

// well reports every 50 ms.
func well(s *server, stream v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsServer) error {
	for {
		if err := stream.Send(report(float64(s.says))); err != nil {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-stream.Context().Done():
			return nil
		}
	}
}

// hangs says nothing.
func hangs(_ *server, stream v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsServer) error {
	<-stream.Context().Done()
	return nil
}

// hears waits until the process has been told some more by the servers.
func hears(t *testing.T, servers ...*server) {
	t.Helper()
	for _, s := range servers {
		before := heardTimes(s.says)
		wait(t, "reports", func() bool { return heardTimes(s.says) > before+2 })
	}
}

const config = `{"loadBalancingConfig":[{"least_conn":{"reports":{"interval":"100ms"}}}]}`

// dial opens a channel to the servers. Channels of one target share their load.
func dial(t *testing.T, target, config string, servers ...*server) *leastconntest.Channel {
	t.Helper()
	cfg := leastconntest.ChannelConfig{ServiceConfig: config, Target: target}
	for _, s := range servers {
		cfg.Endpoints = append(cfg.Endpoints, s.Endpoint())
	}
	c, err := leastconntest.Dial(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	c.Connect()
	return c
}

// others returns the streams on the channel's connections that are no RPCs of its own.
func others(c *leastconntest.Channel) (n int64) {
	for _, s := range state.Snapshots() {
		for _, e := range s.Endpoints {
			for _, m := range e.Members {
				if s.ResourceKey == c.Key() {
					n += m.Connection.Others
				}
			}
		}
	}
	return n
}
