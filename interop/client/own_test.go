package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAllOverOwnServers(t *testing.T) {
	o := client(t.Context(), "--test_case", all())
	o.requireAllPassed(t, 3)
	require.Regexp(t, `^servers \(plaintext\):( 127\.0\.0\.1:\d+){3}\n`, o.out)
}

func TestAllOverOwnServersWithTLS(t *testing.T) {
	o := client(t.Context(), "--test_case", all(), "--servers", "2", "--use_tls", "--server_host_override", "foo.test.google.fr")
	o.requireAllPassed(t, 2)
	require.Regexp(t, `^servers \(TLS as foo\.test\.google\.fr\):( 127\.0\.0\.1:\d+){2}\n`, o.out)
}

// The flags of soaks reach them.
func TestSoakFlags(t *testing.T) {
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

func TestTurns(t *testing.T) {
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
		turns := newTurns(servers)
		for i := range c.cases {
			turns.add(c.cases[i], c.sent[i])
		}
		if err := turns.check(); c.err == "" {
			require.NoError(t, err, c.name)
		} else {
			require.ErrorContains(t, err, c.err, c.name)
		}
	}
}
