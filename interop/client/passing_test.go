package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAllOverOwnServers(t *testing.T) {
	t.Parallel()
	o := client(t.Context(), "--test_case", all(), "--servers", "2", "--use_tls", "--server_host_override", "foo.test.google.fr")
	o.requireAllPassed(t, 2)
	require.Regexp(t, `^servers \(TLS as foo\.test\.google\.fr\):( 127\.0\.0\.1:\d+){2}\n`, o.out)
}

// The flags of soaks reach them.
func TestSoakFlags(t *testing.T) {
	t.Parallel()
	o := client(t.Context(), "--test_case", "rpc_soak,channel_soak", "--soak_iterations", "24", "--soak_num_threads", "4",
		"--soak_request_size", "10", "--soak_response_size", "20", "--soak_min_time_ms_between_rpcs", "1")
	require.Equal(t, exitPassed, o.status, "%s%s", o.out, o.errs)
	require.Regexp(t, `\npass  rpc_soak +24 sent`, o.out)
	require.Regexp(t, `\npass  channel_soak +24 sent`, o.out)
}

// Another key of the ledger is as good, and so is the older way to name the policy.
func TestServiceConfigs(t *testing.T) {
	t.Parallel()
	for _, config := range []string{
		`{"loadBalancingConfig":[{"least_conn":{"resourceKey":"interop"}}]}`,
		`{"loadBalancingPolicy":"least_conn"}`,
	} {
		o := client(t.Context(), "--test_case", "status_code_and_message", "--service_config_json", config)
		require.Equal(t, exitPassed, o.status, "%s%s", o.out, o.errs)
	}
	client(t.Context(), "--test_case", "empty_unary", "--service_config_json", `{"loadBalancingConfig":[{"round_robin":{}}]}`).
		requireFailed(t, "empty_unary", "selects another policy")
}

func TestDistribution(t *testing.T) {
	servers := []server{{Addrs: []string{"a:1", "a:2"}}, {Addrs: []string{"b:1"}}, {Addrs: []string{"c:1"}}}
	one, many := testCase{}, testCase{channels: true}
	for _, c := range []struct {
		name  string
		cases []testCase
		sent  []map[string]int
		err   string
	}{
		{"one RPC", []testCase{one}, []map[string]int{{"b:1": 1}}, ""},
		{"single RPCs", []testCase{one, one}, []map[string]int{{"b:1": 1}, {"b:1": 1}}, ""},
		{"both went to one", []testCase{one}, []map[string]int{{"b:1": 2}}, "1 of 3 servers were used, want 2"},
		{"one server by two addresses", []testCase{one}, []map[string]int{{"a:1": 1, "a:2": 1}}, "1 of 3 servers were used, want 2"},
		{"one was left out", []testCase{one, many}, []map[string]int{{"a:1": 2, "b:1": 2}, {"a:2": 7}}, "2 of 3 servers were used, want 3"},
		{"all", []testCase{one}, []map[string]int{{"a:1": 2, "b:1": 2, "c:1": 2}}, ""},
		{"many channels", []testCase{many}, []map[string]int{{"a:1": 9}}, ""},
	} {
		spread := newDistribution(servers)
		for i := range c.cases {
			spread.add(c.cases[i], c.sent[i])
		}
		if err := spread.check(); c.err == "" {
			require.NoError(t, err, c.name)
		} else {
			require.ErrorContains(t, err, c.err, c.name)
		}
	}
}

// buildServer builds interop/server as this binary was built, with or without the race detector.
func buildServer(t *testing.T) (path string) {
	path = filepath.Join(t.TempDir(), "server")
	args := []string{"build", "-o", path}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "../server")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// startServers starts three servers in a process of their own and returns their ports. They end in order with the test.
func startServers(t *testing.T, path string, args ...string) (ports []string) {
	cmd := exec.Command(path, append(args, "--servers", "3", "--port", "0")...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait())
	})
	for lines := bufio.NewScanner(out); len(ports) < 3; {
		require.True(t, lines.Scan(), "it ended: %v", lines.Err())
		ports = append(ports, lines.Text()[strings.LastIndex(lines.Text(), ":")+1:])
	}
	return ports
}

func TestServersElsewhere(t *testing.T) {
	t.Parallel()
	path := buildServer(t)
	t.Run("plaintext", func(t *testing.T) {
		ports := startServers(t, path)
		client(t.Context(), "--test_case", all(), "--server_host", "127.0.0.1", "--server_port", strings.Join(ports, ",")).
			requireAllPassed(t, 3)
	})
	t.Run("TLS", func(t *testing.T) {
		ca := filepath.Join(t.TempDir(), "ca.pem")
		ports := startServers(t, path, "--use_tls", "--write_ca_file", ca)
		one := []string{"--use_tls", "--server_host", "localhost:" + ports[0] + ",127.0.0.1:" + ports[1] + ",localhost:" + ports[2], "--test_case", "empty_unary"}
		for _, more := range [][]string{{"--use_test_ca"}, {"--server_host_override", "foo.test.google.fr"}} {
			o := client(t.Context(), slices.Concat(one, []string{"--ca_file", ca}, more)...)
			require.Equal(t, exitPassed, o.status, "%s%s", o.out, o.errs)
		}
		client(t.Context(), append(one, "--use_test_ca", "--case_timeout_seconds", "5")...).
			requireFailed(t, "empty_unary", "not ready: localhost:"+ports[0], "unknown authority")
		client(t.Context(), append(one, "--ca_file", ca, "--server_host_override", "other.example", "--case_timeout_seconds", "5")...).
			requireFailed(t, "empty_unary", "not ready: localhost:"+ports[0], "other.example")
	})
}
