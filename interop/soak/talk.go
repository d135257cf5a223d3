package main

import (
	"fmt"
	"math"
	"sync/atomic"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	v3orcaservicegrpc "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/serverload"
)

// talk is what a server tells of its load: what its Load has counted, unless a fault changes that.
type talk struct {
	load *serverload.Load
	says atomic.Pointer[says] // nil: the truth
	open atomic.Int64         // streams of reports
	sent *atomic.Int64        // reports, of the whole fleet, ever
}

// says changes what is told. It returns nil for a report that is not sent, and an error that ends the stream.
type says func(*v3orcapb.OrcaLoadReport) (*v3orcapb.OrcaLoadReport, error)

func newTalk(sent *atomic.Int64) *talk {
	return &talk{load: serverload.New(serverload.Options{}), sent: sent}
}

// options are those of a node whose load it tells.
func (t *talk) options() []grpc.ServerOption { return []grpc.ServerOption{grpc.StatsHandler(t.load)} }

// register registers the service at a node.
func (t *talk) register(r grpc.ServiceRegistrar) {
	if err := t.load.Register(talkRegistrar{r, t}); err != nil {
		panic(fmt.Sprintf("soak: a new server: %v", err))
	}
}

// talkRegistrar puts a talk before the service that a Load registers.
type talkRegistrar struct {
	grpc.ServiceRegistrar
	talk *talk
}

// RegisterService implements grpc.ServiceRegistrar.
func (r talkRegistrar) RegisterService(desc *grpc.ServiceDesc, impl any) {
	honest := impl.(v3orcaservicegrpc.OpenRcaServiceServer)
	r.ServiceRegistrar.RegisterService(desc, talkService{honest, r.talk})
}

// talkService is ORCA's. The one that is embedded tells the truth.
type talkService struct {
	v3orcaservicegrpc.OpenRcaServiceServer
	talk *talk
}

// StreamCoreMetrics implements v3orcaservicegrpc.OpenRcaServiceServer.
func (s talkService) StreamCoreMetrics(req *v3orcaservicegrpc.OrcaLoadReportRequest, stream v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsServer) error {
	s.talk.open.Add(1)
	defer s.talk.open.Add(-1)
	return s.OpenRcaServiceServer.StreamCoreMetrics(req, talkStream{stream, s.talk})
}

// talkStream is embedded to intercept Send.
type talkStream struct {
	v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsServer
	talk *talk
}

// Send implements v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsServer.
func (s talkStream) Send(r *v3orcapb.OrcaLoadReport) error {
	if says := s.talk.says.Load(); says != nil {
		var err error
		if r, err = (*says)(proto.Clone(r).(*v3orcapb.OrcaLoadReport)); err != nil || r == nil {
			return err
		}
	}
	s.talk.sent.Add(1)
	return s.OpenRcaService_StreamCoreMetricsServer.Send(r)
}

// reportFaults happen to what a server tells of its load.
var reportFaults = []fault{
	onReports("reports: silent", 3, func(*v3orcapb.OrcaLoadReport, uint32) (*v3orcapb.OrcaLoadReport, error) { return nil, nil }),
	onReports("reports: nothing to do", 3, func(r *v3orcapb.OrcaLoadReport, _ uint32) (*v3orcapb.OrcaLoadReport, error) {
		r.NamedMetrics[serverload.InFlightMetric] = 0
		return r, nil
	}),
	onReports("reports: too much", 2, func(r *v3orcapb.OrcaLoadReport, roll uint32) (*v3orcapb.OrcaLoadReport, error) {
		r.NamedMetrics[serverload.InFlightMetric] += float64(roll % 10_000)
		return r, nil
	}),
	onReports("reports: garbage", 3, func(r *v3orcapb.OrcaLoadReport, roll uint32) (*v3orcapb.OrcaLoadReport, error) {
		r.NamedMetrics[serverload.InFlightMetric] = garbage[roll%uint32(len(garbage))]
		return r, nil
	}),
	onReports("reports: absurd rate", 2, func(r *v3orcapb.OrcaLoadReport, roll uint32) (*v3orcapb.OrcaLoadReport, error) {
		r.RpsFractional = append(garbage, 1e8)[roll%uint32(len(garbage)+1)]
		return r, nil
	}),
	onReports("reports: streams fail", 2, func(_ *v3orcapb.OrcaLoadReport, roll uint32) (*v3orcapb.OrcaLoadReport, error) {
		return nil, status.Error(failures[roll%uint32(len(failures))], "soak: on request")
	}),
	unimplemented(),
}

// garbage is what no load can be.
var garbage = []float64{math.NaN(), -1, 1e300, math.Inf(1), math.Inf(-1)}

// onReports is a fault that changes what a server tells.
func onReports(name string, share int, change func(r *v3orcapb.OrcaLoadReport, roll uint32) (*v3orcapb.OrcaLoadReport, error)) fault {
	return fault{name: name, share: share, over: true,
		begin: func(t target, roll uint32) error {
			s := says(func(r *v3orcapb.OrcaLoadReport) (*v3orcapb.OrcaLoadReport, error) { return change(r, roll) })
			t.member.says(&s)
			return nil
		},
		end: func(t target, _ uint32) error { t.member.says(nil); return nil },
	}
}

// unimplemented is a server without the service. A client asks such a one again on its next connection.
func unimplemented() fault {
	f := onReports("reports: unimplemented", 2, func(*v3orcapb.OrcaLoadReport, uint32) (*v3orcapb.OrcaLoadReport, error) {
		return nil, status.Error(codes.Unimplemented, "soak: on request")
	})
	end := f.end
	f.end = func(t target, roll uint32) error {
		if err := end(t, roll); err != nil {
			return err
		}
		t.member.current().goAway()
		return nil
	}
	return f
}
