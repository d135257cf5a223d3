package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop"
	"google.golang.org/grpc/interop/grpc_testing"
)

// testCase is one of gRPC's interop cases.
type testCase struct {
	name string
	// do runs it and ends the process when gRPC's checks fail.
	do func(context.Context, *trial)
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
	{name: "unimplemented_method", do: func(ctx context.Context, t *trial) {
		interop.DoUnimplementedMethod(ctx, t.channel.Conn())
	}},
	{name: "unimplemented_service", do: func(ctx context.Context, t *trial) {
		interop.DoUnimplementedService(ctx, grpc_testing.NewUnimplementedServiceClient(t.channel.Conn()))
	}},
	{name: "cancel_after_begin", do: over(interop.DoCancelAfterBegin)},
	{name: "cancel_after_first_response", do: over(interop.DoCancelAfterFirstResponse)},
	{name: "timeout_on_sleeping_server", do: over(interop.DoTimeoutOnSleepingServer), unsent: true},
	{name: "rpc_soak", soaks: true, do: func(ctx context.Context, t *trial) {
		t.Soak.run(ctx, t.Servers[0].Name, func() (*grpc.ClientConn, func()) { return t.channel.Conn(), func() {} })
	}},
	{name: "channel_soak", soaks: true, channels: true, do: func(ctx context.Context, t *trial) {
		t.Soak.run(ctx, t.Servers[0].Name, t.another)
	}},
}

// over makes a case of one of gRPC's functions.
func over(do func(context.Context, grpc_testing.TestServiceClient, ...grpc.CallOption)) func(context.Context, *trial) {
	return func(ctx context.Context, t *trial) { do(ctx, t.channel.Client()) }
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
