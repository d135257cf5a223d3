package serverload

import (
	"fmt"
	"maps"
	"time"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	v3orcaservicegrpc "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/orca"
	"google.golang.org/grpc/status"
)

// InFlightMetric is the named metric with the RPCs in flight.
const InFlightMetric = "in_flight"

// How often a client is told at most, and how often one that does not say.
const (
	minInterval     = 100 * time.Millisecond
	defaultInterval = 30 * time.Second
)

// Register has the server report to clients that ask for it, as often as each of them wants and at most
// every 100 ms; every 30 s those that do not say how often. It is an error if the server has ORCA's service
// already: Register takes the place of orca.Register. It must be called before Serve.
func (l *Load) Register(s grpc.ServiceRegistrar) error {
	name := v3orcaservicegrpc.OpenRcaService_ServiceDesc.ServiceName
	if has, ok := s.(interface {
		GetServiceInfo() map[string]grpc.ServiceInfo
	}); ok {
		if _, registered := has.GetServiceInfo()[name]; registered {
			return fmt.Errorf("serverload: the server has service %s already: want one of Register and orca.Register, not both", name)
		}
	}
	v3orcaservicegrpc.RegisterOpenRcaServiceServer(s, service{load: l})
	return nil
}

// ServerMetrics implements orca.ServerMetricsProvider. The result is the caller's.
func (l *Load) ServerMetrics() *orca.ServerMetrics {
	m := orca.ServerMetrics{CPUUtilization: -1, MemUtilization: -1, AppUtilization: -1, QPS: -1, EPS: -1}
	if p := l.opts.Metrics; p != nil {
		if recorded := p.ServerMetrics(); recorded != nil {
			m = *recorded
		}
	}
	m.Utilization, m.RequestCost, m.NamedMetrics = copied(m.Utilization), copied(m.RequestCost), copied(m.NamedMetrics)
	m.NamedMetrics[InFlightMetric] = float64(l.InFlight())
	if m.QPS < 0 {
		m.QPS = l.rate.perSecond(l.begun.Load(), time.Now())
	}
	return &m
}

// copied returns a copy that is not nil.
func copied(m map[string]float64) map[string]float64 {
	if m == nil {
		return map[string]float64{}
	}
	return maps.Clone(m)
}

// service is ORCA's, for a Load.
type service struct {
	v3orcaservicegrpc.UnimplementedOpenRcaServiceServer
	load *Load
}

// StreamCoreMetrics reports at once and then once in each interval, until the client ends it.
func (s service) StreamCoreMetrics(req *v3orcaservicegrpc.OrcaLoadReportRequest, stream v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsServer) error {
	ticker := time.NewTicker(interval(req))
	defer ticker.Stop()
	for {
		if err := stream.Send(proto(s.load.ServerMetrics())); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}

// interval returns how often a client is told that asks so.
func interval(req *v3orcaservicegrpc.OrcaLoadReportRequest) time.Duration {
	asked := req.GetReportInterval()
	if asked == nil || asked.CheckValid() != nil || asked.AsDuration() <= 0 {
		return defaultInterval
	}
	return max(asked.AsDuration(), minInterval)
}

// proto returns the metrics as they are sent.
func proto(m *orca.ServerMetrics) *v3orcapb.OrcaLoadReport {
	known := func(v float64) float64 { return max(v, 0) } // -1 is not to be sent
	return &v3orcapb.OrcaLoadReport{
		CpuUtilization:         known(m.CPUUtilization),
		MemUtilization:         known(m.MemUtilization),
		ApplicationUtilization: known(m.AppUtilization),
		RpsFractional:          known(m.QPS),
		Eps:                    known(m.EPS),
		Utilization:            m.Utilization,
		RequestCost:            m.RequestCost,
		NamedMetrics:           m.NamedMetrics,
	}
}
