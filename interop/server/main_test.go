package main

import (
	"bytes"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state/statetest"
)

// asProgram makes the test binary be the program.
const asProgram = "LEASTCONN_INTEROP_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	statetest.Main(m)
}

// What is wrong is said in one line with the flag, its value and what is allowed.
func TestBadFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"--port", "65536"}, []string{"-port", `"65536"`, "from 0 to 65535"}},
		{[]string{"--port", "http"}, []string{"-port", `"http"`, "from 0 to 65535"}},
		{[]string{"--servers", "0"}, []string{"-servers", `"0"`, "from 1 to 1000"}},
		{[]string{"--port", "65534", "--servers", "3"}, []string{"--port is 65534", "--servers is 3", "at most 65535"}},
		{[]string{"--host", ""}, []string{`--host is ""`, "an address"}},
		{[]string{"--grace_seconds", "-1"}, []string{"-grace_seconds", `"-1"`, "from 0 to 3600"}},
		{[]string{"--use_tls=x"}, []string{"-use_tls", `"x"`, "true or false"}},
		{[]string{"--tls_cert_file", "c"}, []string{`--tls_cert_file is "c"`, "without --use_tls"}},
		{[]string{"--write_ca_file", "c"}, []string{`--write_ca_file is "c"`, "without --use_tls"}},
		{[]string{"--use_tls", "--tls_cert_file", "c"}, []string{`--tls_cert_file is "c"`, `--tls_key_file is ""`, "want both"}},
		{[]string{"--use_tls", "--tls_key_file", "k"}, []string{`--tls_cert_file is ""`, `--tls_key_file is "k"`, "want both"}},
		{[]string{"--use_tls", "--tls_cert_file", "c", "--tls_key_file", "k", "--write_ca_file", "a"}, []string{`--write_ca_file is "a"`, "--tls_cert_file"}},
		{[]string{"--ports", "1"}, []string{"-ports"}},
		{[]string{"1"}, []string{`"1"`, "flags only"}},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, exitUsage, run(c.args, &out, &errs), c.args)
		require.Empty(t, out.String())
		for _, text := range c.says {
			require.Contains(t, errs.String(), text)
		}
		require.Equal(t, 1, bytes.Count(errs.Bytes(), []byte("\n")), errs.String())
	}
}

func TestHelp(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, exitEnded, run([]string{"--help"}, &out, &errs))
	require.Contains(t, out.String(), "-tls_key_file file")
	require.Empty(t, errs.String())
}

func TestPortTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	require.NoError(t, err)
	var out, errs bytes.Buffer
	require.Equal(t, exitFailed, run([]string{"--port", port}, &out, &errs))
	require.Contains(t, errs.String(), taken.Addr().String())
	require.Empty(t, out.String())
}
