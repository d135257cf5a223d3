package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// emptyAnswers lets unary calls succeed with an empty message.
func emptyAnswers(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if _, err := handler(ctx, req); err != nil {
		return nil, err
	}
	return &grpc_testing.SimpleResponse{}, nil
}

// startNodes starts servers that are none of gRPC's interop servers, and returns the flags that name them.
func startNodes(t *testing.T, names ...string) (nodes []*leastconntest.Node, flags []string) {
	nodes, err := leastconntest.StartNodes(leastconntest.Options{ServerOptions: []grpc.ServerOption{grpc.ChainUnaryInterceptor(emptyAnswers)}}, names...)
	require.NoError(t, err)
	t.Cleanup(func() { leastconntest.CloseNodes(nodes...) })
	flags = []string{"--server_port", ""}
	for i, n := range nodes {
		_, port, err := net.SplitHostPort(n.Addr())
		require.NoError(t, err)
		if i > 0 {
			flags[1] += ","
		}
		flags[1] += port
	}
	return nodes, flags
}

// What gRPC's own checks say of a server that answers wrongly is said.
func TestWrongAnswersFail(t *testing.T) {
	t.Parallel()
	_, flags := startNodes(t, "wrong")
	for name, texts := range map[string][]string{
		"empty_unary":  {"code = Unimplemented desc = method EmptyCall not implemented"},
		"large_unary":  {"FATAL: [interop] Got the reply with type 0 len 0; want 0, 314159"},
		"empty_stream": {"FATAL: [interop] ", "failed to complete the empty stream test"},
		"rpc_soak": {
			"soak iteration: 0 ", "failed: got the reply with type 0 len 0; want 0, 314159\n",
			"FATAL: [interop] Soak test total failures: 10 exceeded max failures threshold: 0\n",
		},
	} {
		client(t.Context(), append(flags, "--test_case", name)...).requireFailed(t, name, texts...)
	}
	o := client(t.Context(), append(flags, "--test_case", "unimplemented_service")...)
	require.Equal(t, exitPassed, o.status, "this one is as it should be: %s%s", o.out, o.errs)
	o = client(t.Context(), append(flags, "--test_case", "rpc_soak", "--soak_max_failures", "10")...)
	require.Equal(t, exitPassed, o.status, "as many may fail: %s%s", o.out, o.errs)
}

// All servers must be there.
func TestUnreachableServersFail(t *testing.T) {
	t.Parallel()
	nodes, flags := startNodes(t, "a", "b")
	flags = append(flags, "--test_case", "unimplemented_service")
	require.Equal(t, exitPassed, client(t.Context(), flags...).status)

	flags = append(flags, "--case_timeout_seconds", "5") // a is ready by then
	nodes[1].Stop()
	_, b, err := net.SplitHostPort(nodes[1].Addr())
	require.NoError(t, err)
	client(t.Context(), flags...).requireFailed(t, "unimplemented_service", "not ready: localhost:"+b+": ")
	nodes[0].Stop()
	client(t.Context(), flags...).requireFailed(t, "unimplemented_service", "not ready: localhost:", "connection refused")
}

// A case that hangs is given up.
func TestSlowCaseFails(t *testing.T) {
	t.Parallel()
	nodes, flags := startNodes(t, "slow")
	nodes[0].HoldUnary(true)
	client(t.Context(), append(flags, "--test_case", "large_unary", "--case_timeout_seconds", "8")...).
		requireFailed(t, "large_unary", "not over after 8s")
}

// A signal ends the case that is running, and the client.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	nodes, flags := startNodes(t, "slow")
	nodes[0].HoldUnary(true)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan outcome)
	go func() { ended <- client(ctx, append(flags, "--test_case", "large_unary,empty_unary")...) }()
	require.NoError(t, nodes[0].WaitLive(t.Context(), 1))
	interrupt()
	o := <-ended
	require.Equal(t, exitFailed, o.status)
	require.Equal(t, "client: interrupted in large_unary\n", o.errs)
	require.NotContains(t, o.out, "empty_unary")
	require.NoError(t, nodes[0].WaitLive(t.Context(), 0))
}

// An RPC that fails is still one that the policy counted.
func TestFailedRPCsAreCounted(t *testing.T) {
	t.Parallel()
	nodes, flags := startNodes(t, "a", "b")
	for _, n := range nodes {
		n.SetFail(codes.Unavailable)
	}
	o := client(t.Context(), append(flags, "--test_case", "rpc_soak", "--soak_max_failures", "10")...)
	require.Equal(t, exitPassed, o.status, "%s%s", o.out, o.errs)
	require.Contains(t, o.out, "RPCs by server: 5 5\n")
}

// As many RPCs are made at a time as the soak has threads.
func TestSoakThreads(t *testing.T) {
	t.Parallel()
	nodes, flags := startNodes(t, "slow")
	nodes[0].HoldUnary(true)
	ended := make(chan outcome)
	go func() {
		ended <- client(t.Context(), append(flags, "--test_case", "rpc_soak",
			"--soak_iterations", "4", "--soak_num_threads", "4", "--soak_max_failures", "4")...)
	}()
	require.NoError(t, nodes[0].WaitLive(t.Context(), 4))
	nodes[0].HoldUnary(false)
	o := <-ended
	require.Equal(t, exitPassed, o.status, "%s%s", o.out, o.errs)
}

// broken are cases that must not pass, whatever they do.
var broken = []testCase{
	{name: "leaves_one_open", do: func(ctx context.Context, t *caseRun) {
		stream, err := t.channel.Client().FullDuplexCall(ctx)
		must(err)
		must(stream.Send(&grpc_testing.StreamingOutputCallRequest{ResponseParameters: []*grpc_testing.ResponseParameters{{Size: 1}}}))
		_, err = stream.Recv()
		must(err)
		fmt.Fprintln(os.Stderr, "a word that is no reason, as soaks say many")
	}},
	{name: "sends_nothing", do: func(context.Context, *caseRun) {}},
	{name: "goes_past_the_policy", do: func(ctx context.Context, t *caseRun) {
		ch, err := leastconntest.Dial(leastconntest.ChannelConfig{
			ServiceConfig: "{}",
			Endpoints:     endpoints(t.Servers),
			DialOptions:   []grpc.DialOption{grpc.WithStatsHandler(t.countCheck)},
		})
		must(err)
		defer ch.Close()
		_, err = ch.Client().EmptyCall(ctx, &grpc_testing.Empty{})
		must(err)
	}},
	{name: "panics", do: func(context.Context, *caseRun) { panic("this is what went wrong") }},
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func TestBrokenCasesFail(t *testing.T) {
	for name, texts := range map[string][]string{
		"leaves_one_open":      {"FAIL  leaves_one_open\n      leastconntest: waited ", "for counts of 0", "1 in flight on 127.0.0.1:"},
		"goes_past_the_policy": {"/grpc.testing.TestService/EmptyCall went to 127.0.0.1:", "where least_conn counts 0 in flight"},
		"sends_nothing":        {"FAIL  sends_nothing\n      no RPC was sent\n"},
		"panics":               {"\n      panic: this is what went wrong\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := "60"
			if name == "leaves_one_open" {
				limit = "8" // until the counts are given up
			}
			client(t.Context(), "--test_case", name, "--case_timeout_seconds", limit).requireFailed(t, name, texts...)
		})
	}
}

// A failed case does not keep the others from being run.
func TestOthersGoOn(t *testing.T) {
	t.Parallel()
	o := client(t.Context(), "--test_case", "empty_unary,sends_nothing,ping_pong")
	require.Equal(t, exitFailed, o.status)
	require.Equal(t, "client: 1 of 3 cases failed: sends_nothing\n", o.errs)
	require.Regexp(t, "(?s)\npass  empty_unary .*\nFAIL  sends_nothing\n.*\npass  ping_pong ", o.out)
	require.NotContains(t, o.out, "counts 0")
}
