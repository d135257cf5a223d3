// Package orcaload lets least_conn listen to what servers tell of their load, by the service of
// ORCA's out-of-band reports (xds.service.orca.v3.OpenRcaService). Import it for that, beside the policy,
// and say in its configuration how often servers are to tell:
//
//	import (
//		_ "github.com/leastconn/grpc-leastconn/leastconnbalancer"
//		_ "github.com/leastconn/grpc-leastconn/leastconnbalancer/orcaload"
//	)
//
//	grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"least_conn":{"reports":{"interval":"10s"}}}]}`)
//
// Of a report it reads, under these names:
//
//   - named_metrics["in_flight"]: the server's RPCs in flight, of all its clients;
//   - without that, utilization["in_flight_ppm"]: their number divided by 1,000,000, for ORCA libraries
//     that take numbers from 0 to 1 only;
//   - rps_fractional: how many RPCs begin per second. 0 is taken as not known.
//
// Package serverload reports so. A report without a number in flight, or with one that cannot be, is
// passed over. Of reports that come much faster than they were asked for the last one counts, four times in an
// interval. A server that does not know the service is not asked again on that connection.
package orcaload

import (
	"context"
	"time"

	v3orcaservicegrpc "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/reports"
)

func init() { reports.Register(listen) }

// listen implements reports.Listener.
func listen(conn balancer.SubConn, interval time.Duration, report reports.Report) (stop func()) {
	l := &listener{interval: interval, report: report}
	_, stop = conn.GetOrBuildProducer(l)
	context.AfterFunc(l.ctx, stop) // a server that does not report leaves its stream's room to RPCs
	return stop
}

// listener is a producer of its own on a connection. The one of package orca is not used: gRPC's
// goroutine hangs when the connection is lost while another goroutine registers a listener there.
type listener struct {
	interval time.Duration
	report   reports.Report
	ctx      context.Context // which ends when it does
}

// Build implements balancer.ProducerBuilder.
func (l *listener) Build(conn any) (balancer.Producer, func()) {
	client := v3orcaservicegrpc.NewOpenRcaServiceClient(conn.(grpc.ClientConnInterface))
	ctx, cancel := context.WithCancel(context.Background())
	l.ctx = ctx
	done := make(chan struct{})
	go func() {
		defer cancel()
		defer close(done)
		l.run(ctx, client)
	}()
	return l, func() {
		cancel()
		<-done
	}
}
