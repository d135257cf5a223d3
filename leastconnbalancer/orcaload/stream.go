package orcaload

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	v3orcaservicegrpc "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// run listens until ctx ends or the server says that it never reports. A stream that breaks is
// begun again: within an interval, at random, where it has reported, else at gRPC's backoff.
func (l *listener) run(ctx context.Context, client v3orcaservicegrpc.OpenRcaServiceClient) {
	for failures := 0; ; failures++ {
		reported, err := l.stream(ctx, client)
		if ctx.Err() != nil || status.Code(err) == codes.Unimplemented {
			return
		}
		pause := delay(failures, rand.Float64())
		if reported {
			failures = -1
			pause = rand.N(max(l.interval, backoff.DefaultConfig.BaseDelay))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// delay returns how long to wait after so many failures before another one. random is in [0, 1).
func delay(failures int, random float64) time.Duration {
	c := backoff.DefaultConfig
	d := float64(c.BaseDelay) * math.Pow(c.Multiplier, float64(failures))
	return time.Duration(min(d, float64(c.MaxDelay)) * (1 + c.Jitter*(2*random-1)))
}

// stream passes the reports of one stream on. It tells whether there were any.
func (l *listener) stream(ctx context.Context, client v3orcaservicegrpc.OpenRcaServiceClient) (reported bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.StreamCoreMetrics(ctx, &v3orcaservicegrpc.OrcaLoadReportRequest{ReportInterval: durationpb.New(l.interval)})
	if err != nil {
		return false, err
	}
	p := pace{listener: l}
	defer p.end()
	for {
		r, err := stream.Recv()
		if err != nil {
			return reported, err
		}
		reported = true
		if inFlight, rps, ok := read(r); ok {
			p.take(inFlight, rps)
		}
	}
}
