package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/interop/internal/flags"
)

// What is wrong is said in one line with the flag, its value and what is allowed.
func TestBadFlags(t *testing.T) {
	notPEM := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(notPEM, []byte("no certificate"), 0o600))
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"--test_case", "empty_unary,pick_first_unary"}, []string{`--test_case is "empty_unary,pick_first_unary"`, `"pick_first_unary"`, "all or", "large_unary, client_streaming"}},
		{[]string{"--servers", "0"}, []string{"-servers", `"0"`, "from 1 to 1000"}},
		{[]string{"--servers", "2", "--server_port", "1"}, []string{"--servers is 2", "--server_host"}},
		{[]string{"--server_host", ""}, []string{`--server_host is ""`, "HOST or HOST:PORT"}},
		{[]string{"--server_host", "127.0.0.1:0"}, []string{`"127.0.0.1:0"`, `port "0"`, "from 1 to 65535"}},
		{[]string{"--server_port", "1,,2"}, []string{`--server_port is "1,,2"`, `port ""`, "from 1 to 65535"}},
		{[]string{"--server_host", "127.0.0.1", "--server_port", "1,2,1"}, []string{"127.0.0.1:1 is there twice", "want each server once"}},
		{[]string{"--ca_file", "x"}, []string{`--ca_file is "x"`, "without --server_host"}},
		{[]string{"--server_port", "1", "--ca_file", "x"}, []string{`--ca_file is "x"`, "without --use_tls"}},
		{[]string{"--server_port", "1", "--use_test_ca"}, []string{"--use_test_ca is true", "without --use_tls"}},
		{[]string{"--server_host_override", "x"}, []string{`--server_host_override is "x"`, "without --use_tls"}},
		{[]string{"--server_port", "1", "--use_tls", "--ca_file", "no/such/file"}, []string{`--ca_file is "no/such/file"`, "certificates in PEM"}},
		{[]string{"--server_port", "1", "--use_tls", "--ca_file", notPEM}, []string{notPEM, "certificates in PEM"}},
		{[]string{"--service_config_json", "{"}, []string{"--service_config_json is {", "least_conn"}},
		{[]string{"--service_config_json", `{"loadBalancingConfig":[{"least_conn":{"resourceKey":1}}]}`}, []string{"--service_config_json", "field resourceKey: value 1", "a string"}},
		{[]string{"--soak_iterations", "0"}, []string{"-soak_iterations", `"0"`, "from 1 to"}},
		{[]string{"--soak_iterations", "10", "--soak_num_threads", "3"}, []string{"--soak_iterations is 10", "--soak_num_threads is 3", "a multiple"}},
		{[]string{"--soak_response_size", "4194304"}, []string{"-soak_response_size", `"4194304"`, "from 0 to 4193280"}},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, flags.ExitUsage, run(t.Context(), c.args, &out, &errs, standard), c.args)
		require.Empty(t, out.String())
		for _, text := range c.says {
			require.Contains(t, errs.String(), text)
		}
		require.Equal(t, 1, bytes.Count(errs.Bytes(), []byte("\n")), errs.String())
	}
}

// Without a word about them there are three servers of the client's own; a port alone is one of this machine; each host
// without a port has all of the ports.
func TestServers(t *testing.T) {
	parsed := func(args ...string) *options {
		o, err := parse(t.Context(), args, os.Stderr, standard)
		require.NoError(t, err)
		return o
	}
	named := func(o *options) (names []string) {
		require.Zero(t, o.own)
		for _, s := range o.Servers {
			names = append(names, s.Name)
		}
		return names
	}
	o := parsed()
	require.Equal(t, 3, o.own)
	require.Empty(t, o.Servers)
	require.Equal(t, len(standard), len(o.cases))
	require.Equal(t, []string{"localhost:7"}, named(parsed("--server_port", "7")))
	require.Equal(t, []string{"127.0.0.1:10000"}, named(parsed("--server_host", "127.0.0.1")))
	require.Equal(t, []string{"[::1]:7", "[::1]:8", "127.0.0.1:9"}, named(parsed("--server_host", "::1,127.0.0.1:9", "--server_port", "7,8")))
	require.Equal(t, []string{"[::1]:7", "[::1]:8"}, named(parsed("--server_host", "[::1],[::1]:8", "--server_port", "7")))
	ca := parsed("--server_port", "1", "--use_tls", "--use_test_ca").TLS.CA
	require.Contains(t, string(ca), "BEGIN CERTIFICATE", "gRPC's own one")
}
