// Package serverload has a server tell its clients how many RPCs it has in flight, of all of them, by
// ORCA's out-of-band reports. Clients with least_conn and package orcaload send their RPCs by it.
//
//	load := serverload.New(serverload.Options{})
//	server := grpc.NewServer(grpc.StatsHandler(load))
//	if err := load.Register(server); err != nil {
//		log.Fatal(err)
//	}
//
// It knows nothing of the policy, and works with any client that reads ORCA's reports.
package serverload

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/orca"
	"google.golang.org/grpc/stats"
)

// Options says what a Load does beside counting. The zero value is right for a server that does not use
// ORCA yet.
type Options struct {
	// Metrics are what the application records for ORCA, such as an orca.ServerMetricsRecorder. They are part
	// of each report: a QPS that is set there is reported instead of the rate that the Load measures, and a
	// named metric "in_flight" is not reported. May be nil.
	Metrics orca.ServerMetricsProvider
}

// Load counts the RPCs of a server, of all services but ORCA's, health checking and reflection. An RPC is
// in flight from when its service and method are found until its handler has returned, however it ends.
//
// It implements stats.Handler, for grpc.StatsHandler, and orca.ServerMetricsProvider, for
// orca.CallMetricsServerOption, which reports with each call whose handler has taken the call's recorder. Make
// it with New. It may be used by several goroutines at once, and by several servers, whose RPCs it counts
// together.
type Load struct {
	opts Options
	rate rate

	_     [64]byte // each count has a line of memory of its own
	begun atomic.Int64
	_     [64]byte
	ended atomic.Int64
	_     [64]byte
}

// New returns a Load that has counted nothing.
func New(opts Options) *Load {
	l := &Load{opts: opts}
	l.rate.start(time.Now())
	return l
}

// InFlight returns how many RPCs are in flight.
func (l *Load) InFlight() int64 {
	ended := l.ended.Load() // first: the other is never below it
	return l.begun.Load() - ended
}

// Begun returns how many RPCs have begun, ever.
func (l *Load) Begun() int64 { return l.begun.Load() }

// counted is the context of an RPC that l counts: gRPC keeps it from the beginning to the end.
type counted struct {
	context.Context // embedded to intercept Value
	load            *Load
}

// Value returns the context itself for its Load.
func (c *counted) Value(key any) any {
	if key == c.load {
		return c
	}
	return c.Context.Value(key)
}

// TagRPC implements stats.Handler.
func (l *Load) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if infrastructure(info.FullMethodName) {
		return ctx
	}
	return &counted{ctx, l}
}

// HandleRPC implements stats.Handler.
func (l *Load) HandleRPC(ctx context.Context, s stats.RPCStats) {
	switch s.(type) {
	case *stats.Begin:
		if l.counts(ctx) {
			l.begun.Add(1)
		}
	case *stats.End:
		if l.counts(ctx) {
			l.ended.Add(1)
		}
	}
}

// counts reports whether the context is that of an RPC that l counts.
func (l *Load) counts(ctx context.Context) bool {
	if c, ok := ctx.(*counted); ok && c.load == l {
		return true
	}
	return ctx.Value(l) != nil
}

// TagConn implements stats.Handler.
func (*Load) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (*Load) HandleConn(context.Context, stats.ConnStats) {}

// infrastructure reports whether a method is of a service that is no load.
func infrastructure(method string) bool {
	switch {
	case strings.HasPrefix(method, "/grpc."):
		return strings.HasPrefix(method, "/grpc.health.v1.Health/") ||
			strings.HasPrefix(method, "/grpc.reflection.v1.ServerReflection/") ||
			strings.HasPrefix(method, "/grpc.reflection.v1alpha.ServerReflection/")
	case strings.HasPrefix(method, "/xds."):
		return strings.HasPrefix(method, "/xds.service.orca.v3.OpenRcaService/")
	}
	return false
}
