package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
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

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// patience is how long a process may live before it is killed.
const patience = 30 * time.Second

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
