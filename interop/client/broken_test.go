package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// broken are cases that must not pass, whatever they do.
var broken = []testCase{
	{name: "leaves_one_open", do: func(ctx context.Context, t *trial) {
		stream, err := t.channel.Client().FullDuplexCall(ctx)
		must(err)
		must(stream.Send(&grpc_testing.StreamingOutputCallRequest{ResponseParameters: []*grpc_testing.ResponseParameters{{Size: 1}}}))
		_, err = stream.Recv()
		must(err)
		fmt.Fprintln(os.Stderr, "a word that is no reason, as soaks say many")
	}},
	{name: "sends_nothing", do: func(context.Context, *trial) {}},
	{name: "goes_past_the_policy", do: func(ctx context.Context, t *trial) {
		ch, err := leastconntest.Dial(leastconntest.ChannelConfig{
			ServiceConfig: "{}",
			Endpoints:     endpoints(t.Servers),
			DialOptions:   []grpc.DialOption{grpc.WithStatsHandler(t.watch)},
		})
		must(err)
		defer ch.Close()
		_, err = ch.Client().EmptyCall(ctx, &grpc_testing.Empty{})
		must(err)
	}},
	{name: "panics", do: func(context.Context, *trial) { panic("this is what went wrong") }},
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func TestCountsThatAreNot0AreFound(t *testing.T) {
	t.Parallel()
	client(t.Context(), "--test_case", "leaves_one_open", "--case_timeout_seconds", "1").
		requireFailed(t, "leaves_one_open", "FAIL  leaves_one_open\n      leastconntest: waited ", "for counts of 0", "1 in flight on 127.0.0.1:")
}

func TestRPCsPastThePolicyAreFound(t *testing.T) {
	client(t.Context(), "--test_case", "goes_past_the_policy").
		requireFailed(t, "goes_past_the_policy", "/grpc.testing.TestService/EmptyCall went to 127.0.0.1:", "where least_conn counts 0 in flight")
}

func TestCaseWithoutRPCFails(t *testing.T) {
	client(t.Context(), "--test_case", "sends_nothing").requireFailed(t, "sends_nothing", "FAIL  sends_nothing\n      no RPC was sent\n")
}

func TestPanicFails(t *testing.T) {
	client(t.Context(), "--test_case", "panics").requireFailed(t, "panics", "\n      panic: this is what went wrong\n")
}

// A failed case does not keep the others from being run.
func TestOthersGoOn(t *testing.T) {
	o := client(t.Context(), "--test_case", "empty_unary,sends_nothing,ping_pong")
	require.Equal(t, exitFailed, o.status)
	require.Equal(t, "client: 1 of 3 cases failed: sends_nothing\n", o.errs)
	require.Regexp(t, "(?s)\npass  empty_unary .*\nFAIL  sends_nothing\n.*\npass  ping_pong ", o.out)
	require.NotContains(t, o.out, "counts 0")
}
