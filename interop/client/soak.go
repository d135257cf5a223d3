package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop"

	"github.com/leastconn/grpc-leastconn/interop/internal/flags"
)

// maxPayload keeps messages within what gRPC receives unless it is told otherwise.
const maxPayload = 4<<20 - 1<<10

// soak is how the soaks go, in the units of the flags.
type soak struct {
	Iterations, MaxFailures, Threads             int
	RequestSize, ResponseSize                    int
	MaxLatencyMS, MinTimeBetweenMS, OverallLimit int
}

func (s *soak) define(fs *flag.FlagSet) {
	const ms = 1000 * maxSeconds
	flags.Int(fs, &s.Iterations, "soak_iterations", 10, 1, math.MaxInt32, "`number` of RPCs of a soak")
	flags.Int(fs, &s.MaxFailures, "soak_max_failures", 0, 0, math.MaxInt32, "`number` of them that may fail or take too long")
	flags.Int(fs, &s.MaxLatencyMS, "soak_per_iteration_max_acceptable_latency_ms", 1000, 1, ms, "how many `milliseconds` one may take")
	flags.Int(fs, &s.MinTimeBetweenMS, "soak_min_time_ms_between_rpcs", 0, 0, ms, "least `milliseconds` from the start of one to that of the next")
	flags.Int(fs, &s.OverallLimit, "soak_overall_timeout_seconds", 10, 1, maxSeconds, "how many `seconds` a soak may take")
	flags.Int(fs, &s.RequestSize, "soak_request_size", 271828, 0, maxPayload, "`bytes` of each request's payload")
	flags.Int(fs, &s.ResponseSize, "soak_response_size", 314159, 0, maxPayload, "`bytes` of each response's payload")
	flags.Int(fs, &s.Threads, "soak_num_threads", 1, 1, 10000, "how `many` RPCs are made at a time")
}

func (s *soak) check() error {
	if s.Iterations%s.Threads != 0 {
		return fmt.Errorf("--soak_iterations is %d and --soak_num_threads is %d: want a multiple", s.Iterations, s.Threads)
	}
	return nil
}

func (s *soak) limit() time.Duration { return time.Duration(s.OverallLimit) * time.Second }

// run soaks over the channels that next returns.
func (s *soak) run(ctx context.Context, name string, next func() (*grpc.ClientConn, func())) {
	ctx, cancel := context.WithTimeout(ctx, s.limit())
	defer cancel()
	interop.DoSoakTest(ctx, interop.SoakTestConfig{
		RequestSize:                      s.RequestSize,
		ResponseSize:                     s.ResponseSize,
		PerIterationMaxAcceptableLatency: time.Duration(s.MaxLatencyMS) * time.Millisecond,
		MinTimeBetweenRPCs:               time.Duration(s.MinTimeBetweenMS) * time.Millisecond,
		OverallTimeout:                   s.limit(),
		ServerAddr:                       name,
		NumWorkers:                       s.Threads,
		Iterations:                       s.Iterations,
		MaxFailures:                      s.MaxFailures,
		ChannelForTest:                   next,
	})
}
