package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/interop/internal/flags"
)

// testCase is one of gRPC's interop cases.
type testCase struct {
	name string
	// do runs it and ends the process when gRPC's checks fail.
	do func(context.Context, *caseRun)
	// soaks says that it has a soak's time.
	soaks bool
	// channels says that it makes channels of its own.
	channels bool
	// unsent says that its RPC may be over before it is sent.
	unsent bool
}

// standard are the cases that grpc-go has for any policy, in the order of gRPC's own description.
var standard = []testCase{
	{name: "empty_unary", do: over(interop.DoEmptyUnaryCall)},
	{name: "large_unary", do: over(interop.DoLargeUnaryCall)},
	{name: "client_streaming", do: over(interop.DoClientStreaming)},
	{name: "server_streaming", do: over(interop.DoServerStreaming)},
	{name: "ping_pong", do: over(interop.DoPingPong)},
	{name: "empty_stream", do: over(interop.DoEmptyStream)},
	{name: "custom_metadata", do: over(interop.DoCustomMetadata)},
	{name: "status_code_and_message", do: over(interop.DoStatusCodeAndMessage)},
	{name: "special_status_message", do: over(interop.DoSpecialStatusMessage)},
	{name: "unimplemented_method", do: func(ctx context.Context, cr *caseRun) {
		interop.DoUnimplementedMethod(ctx, cr.channel.Conn())
	}},
	{name: "unimplemented_service", do: func(ctx context.Context, cr *caseRun) {
		interop.DoUnimplementedService(ctx, grpc_testing.NewUnimplementedServiceClient(cr.channel.Conn()))
	}},
	{name: "cancel_after_begin", do: over(interop.DoCancelAfterBegin)},
	{name: "cancel_after_first_response", do: over(interop.DoCancelAfterFirstResponse)},
	{name: "timeout_on_sleeping_server", do: over(interop.DoTimeoutOnSleepingServer), unsent: true},
	{name: "rpc_soak", soaks: true, do: func(ctx context.Context, cr *caseRun) {
		cr.Soak.run(ctx, cr.Servers[0].Name, func() (*grpc.ClientConn, func()) { return cr.channel.Conn(), func() {} })
	}},
	{name: "channel_soak", soaks: true, channels: true, do: func(ctx context.Context, cr *caseRun) {
		cr.Soak.run(ctx, cr.Servers[0].Name, cr.anotherChannel)
	}},
}

// over makes a case of one of gRPC's functions.
func over(do func(context.Context, grpc_testing.TestServiceClient, ...grpc.CallOption)) func(context.Context, *caseRun) {
	return func(ctx context.Context, cr *caseRun) { do(ctx, cr.channel.Client()) }
}

// choose returns the cases that a comma-separated list names, and all of them for "all".
func choose(cases []testCase, list string) ([]testCase, error) {
	if list == "all" {
		return cases, nil
	}
	var chosen []testCase
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(cases, func(c testCase) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("--test_case is %q and names %q, want all or, separated by commas: %s", list, name, names(cases))
		}
		chosen = append(chosen, cases[i])
	}
	return chosen, nil
}

func names(cases []testCase) string {
	var all []string
	for _, c := range cases {
		all = append(all, c.name)
	}
	return strings.Join(all, ", ")
}

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
