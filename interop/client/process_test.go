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

func TestAllOverServersElsewhere(t *testing.T) {
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
		hosts := []string{"--use_tls", "--server_host", "localhost:" + ports[0] + ",127.0.0.1:" + ports[1] + ",localhost:" + ports[2]}
		client(t.Context(), append(hosts, "--test_case", all(), "--use_test_ca", "--ca_file", ca)...).requireAllPassed(t, 3)

		one := append(hosts, "--test_case", "empty_unary")
		client(t.Context(), append(one, "--use_test_ca", "--case_timeout_seconds", "1")...).
			requireFailed(t, "empty_unary", "not ready: localhost:"+ports[0], "unknown authority")
		client(t.Context(), append(one, "--ca_file", ca, "--server_host_override", "other.example", "--case_timeout_seconds", "1")...).
			requireFailed(t, "empty_unary", "not ready: localhost:"+ports[0], "other.example")
		o := client(t.Context(), append(one, "--ca_file", ca, "--server_host_override", "foo.test.google.fr")...)
		require.Equal(t, exitPassed, o.status, "%s%s", o.out, o.errs)
	})
}
