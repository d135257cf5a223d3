package serverload_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/serverload"
)

// What counting adds to an RPC: gRPC's calls of the handler, without those that it makes anyway.
func BenchmarkRPC(b *testing.B) {
	ctx := metadata.NewIncomingContext(context.WithValue(context.Background(), otherKey{}, 1), metadata.MD{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	info := &stats.RPCTagInfo{FullMethodName: "/grpc.testing.TestService/UnaryCall"}
	events := []stats.RPCStats{
		&stats.InHeader{}, &stats.Begin{}, &stats.InPayload{}, &stats.OutHeader{}, &stats.OutPayload{}, &stats.OutTrailer{}, &stats.End{},
	}
	rpc := func(load stats.Handler) {
		ctx := load.TagRPC(ctx, info)
		for _, e := range events[:2] {
			load.HandleRPC(ctx, e)
		}
		ctx = context.WithValue(ctx, otherKey{}, 2) // as gRPC has it from here on, which costs 30 ns itself
		for _, e := range events[2:] {
			load.HandleRPC(ctx, e)
		}
	}
	for name, load := range map[string]stats.Handler{"none": none{}, "load": serverload.New(serverload.Options{})} {
		b.Run("handler="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rpc(load)
			}
		})
		b.Run("parallel/handler="+name, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					rpc(load)
				}
			})
		})
	}
}

// none does nothing.
type none struct{ other }

func (none) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// What a report costs the server, apart from gRPC.
func BenchmarkReport(b *testing.B) {
	load := serverload.New(serverload.Options{})
	b.ReportAllocs()
	for b.Loop() {
		load.ServerMetrics()
	}
}
