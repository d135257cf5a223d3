package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/interop/internal/testserver"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// patience is how long a process may live before it is killed.
const patience = 3 * time.Minute

// process is the program in a process of its own.
type process struct {
	*exec.Cmd
	addrs []string
}

// start returns when n servers are ready.
func start(t *testing.T, n int, args ...string) *process {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	p := &process{Cmd: exec.CommandContext(ctx, os.Args[0], append(args, "--port", "0")...)}
	p.Env = append(os.Environ(), asProgram+"=1", "GORACE=atexit_sleep_ms=10") // the default is a second
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	for lines := bufio.NewScanner(out); len(p.addrs) < n; {
		require.True(t, lines.Scan(), "it ended: %v", lines.Err())
		addr, ok := strings.CutPrefix(lines.Text(), "listening addr=")
		require.True(t, ok, lines.Text())
		p.addrs = append(p.addrs, addr)
	}
	return p
}

func (p *process) signal(t *testing.T) { require.NoError(t, p.Process.Signal(syscall.SIGTERM)) }

// dial makes a channel to one server.
func dial(t *testing.T, addr string, creds credentials.TransportCredentials) *grpc.ClientConn {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(creds), grpc.WithNoProxy())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// call makes an RPC and returns its error.
func call(t *testing.T, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(t.Context(), leastconntest.DefaultTimeout)
	defer cancel()
	_, err := grpc_testing.NewTestServiceClient(conn).EmptyCall(ctx, &grpc_testing.Empty{})
	return err
}

// stream is an open RPC.
type stream struct {
	conn *grpc.ClientConn
	grpc_testing.TestService_FullDuplexCallClient
}

func open(t *testing.T, addr string) stream {
	conn := dial(t, addr, insecure.NewCredentials())
	call, err := grpc_testing.NewTestServiceClient(conn).FullDuplexCall(t.Context())
	require.NoError(t, err)
	s := stream{conn, call}
	require.NoError(t, s.ping())
	return s
}

func (s stream) ping() error {
	if err := s.Send(&grpc_testing.StreamingOutputCallRequest{ResponseParameters: []*grpc_testing.ResponseParameters{{Size: 1}}}); err != nil {
		return err
	}
	_, err := s.Recv()
	return err
}

// waitGoAway waits until the server has told the connection to go away.
func (s stream) waitGoAway(t *testing.T) {
	require.NoError(t, leastconntest.WaitFor(t.Context(), "GOAWAY", func() bool {
		return s.conn.GetState() != connectivity.Ready
	}))
}

// Without files the certificate is made at run time, and whoever has its authority trusts it.
func TestTLS(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	p := start(t, 2, "--servers", "2", "--use_tls", "--write_ca_file", ca)
	for _, addr := range p.addrs {
		for _, name := range []string{"", "localhost", "foo.test.google.fr"} {
			creds, err := credentials.NewClientTLSFromFile(ca, name)
			require.NoError(t, err)
			require.NoError(t, call(t, dial(t, addr, creds)), name)
		}
		wrong, err := credentials.NewClientTLSFromFile(ca, "other.example")
		require.NoError(t, err)
		require.ErrorContains(t, call(t, dial(t, addr, wrong)), "other.example")
		none := credentials.NewClientTLSFromCert(x509.NewCertPool(), "")
		require.ErrorContains(t, call(t, dial(t, addr, none)), "unknown authority")
	}
	p.signal(t)
	require.NoError(t, p.Wait())
}

func TestTLSFiles(t *testing.T) {
	c, err := testserver.NewCertificate("files.example")
	require.NoError(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(c.TLS.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	p := start(t, 1, "--use_tls",
		"--tls_cert_file", write("cert.pem", "CERTIFICATE", c.TLS.Certificate[0]),
		"--tls_key_file", write("key.pem", "PRIVATE KEY", key))
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(c.CA))
	require.NoError(t, call(t, dial(t, p.addrs[0], credentials.NewClientTLSFromCert(roots, "files.example"))))
	p.signal(t)
	require.NoError(t, p.Wait())
}
