package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/interop/internal/flags"
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
		require.Equal(t, flags.ExitUsage, run(t.Context(), c.args, &out, &errs), c.args)
		require.Empty(t, out.String())
		for _, text := range c.says {
			require.Contains(t, errs.String(), text)
		}
		require.Equal(t, 1, bytes.Count(errs.Bytes(), []byte("\n")), errs.String())
	}
}

func TestHelp(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, exitEnded, run(t.Context(), []string{"--help"}, &out, &errs))
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
	require.Equal(t, exitFailed, run(t.Context(), []string{"--port", port}, &out, &errs))
	require.Contains(t, errs.String(), taken.Addr().String())
	require.Empty(t, out.String())
}

// On SIGTERM the open streams go on to their ends, and then the program does.
func TestEndsInOrder(t *testing.T) {
	p := start(t, 3, "--servers", "3", "--grace_seconds", "3600")
	var streams []stream
	for _, addr := range p.addrs {
		streams = append(streams, open(t, addr))
	}
	p.signal(t)
	for i, s := range streams {
		s.waitGoAway(t)
		require.Error(t, call(t, dial(t, p.addrs[i], insecure.NewCredentials())), "no new RPC")
		require.NoError(t, s.ping())
	}
	for _, s := range streams {
		require.NoError(t, s.CloseSend())
		_, err := s.Recv()
		require.Equal(t, io.EOF, err)
	}
	require.NoError(t, p.Wait())
}

// Streams that go on for too long are broken.
func TestGraceEnds(t *testing.T) {
	p := start(t, 1, "--grace_seconds", "0")
	s := open(t, p.addrs[0])
	p.signal(t)
	_, err := s.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err), err)
	require.NoError(t, p.Wait())
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	p := start(t, 1, "--grace_seconds", "3600")
	s := open(t, p.addrs[0])
	p.signal(t)
	s.waitGoAway(t)
	require.NoError(t, s.ping())
	p.signal(t)
	var exit *exec.ExitError
	require.ErrorAs(t, p.Wait(), &exit)
	require.Equal(t, syscall.SIGTERM, exit.Sys().(syscall.WaitStatus).Signal())
}
