package main

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// startNodes starts servers that are none of gRPC's interop servers, and returns the flags that name them.
func startNodes(t *testing.T, names ...string) (nodes []*leastconntest.Node, flags []string) {
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, names...)
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

	flags = append(flags, "--case_timeout_seconds", "1")
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
	client(t.Context(), append(flags, "--test_case", "large_unary", "--case_timeout_seconds", "1")...).
		requireFailed(t, "large_unary", "not over after 1s")
}

// A signal ends the case that is running, and the client.
func TestInterrupt(t *testing.T) {
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
