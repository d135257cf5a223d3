package main

import (
	"io"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

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
