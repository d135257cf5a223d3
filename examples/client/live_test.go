package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// screen is what a run has printed so far.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *screen) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(strings.TrimSpace(s.buf.String()), "\n")
}

// saw reports whether a line has the text, and which.
func (s *screen) saw(text string) int {
	for i, line := range s.lines() {
		if strings.Contains(line, text) {
			return i
		}
	}
	return -1
}

// A server that is written into the node file takes the next sessions; one that
// stops loses its sessions, and the others take new ones.
func TestLiveSessionsFollowTheNodeFile(t *testing.T) {
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, "a", "b")
	require.NoError(t, err)
	defer leastconntest.CloseNodes(nodes...)
	path := filepath.Join(t.TempDir(), "nodes.yaml")
	write := func(nodes ...*leastconntest.Node) {
		text := "nodes:\n"
		for _, n := range nodes {
			text += fmt.Sprintf("- address: %s\n", n.Addr())
		}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(nodes[0])

	ctx, stop := context.WithCancel(t.Context())
	out := &screen{}
	var status int
	var runErr error
	var running sync.WaitGroup
	running.Go(func() {
		status, runErr = run(ctx, []string{"-target", "nodes://" + path, "-every", "10ms"}, out)
	})
	see := func(text string) int {
		t.Helper()
		require.NoError(t, leastconntest.WaitFor(t.Context(), text, func() bool { return out.saw(text) >= 0 }))
		return out.saw(text)
	}
	see("a 4")
	write(nodes...)
	first := see("new session on b")
	see("b 4")
	for _, line := range out.lines()[first : first+4] {
		require.Contains(t, line, "new session on b", "the new server takes the next ones until it is level")
	}
	nodes[0].Stop()
	see("session ended on a")
	stop()
	running.Wait()
	require.NoError(t, runErr)
	require.Equal(t, exitPlaced, status)
}

func TestLiveFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-target", "nodes:///x", "-every", "0s"},
		{"-target", "nodes:///x", "-for", "-1s"},
	} {
		status, err := run(t.Context(), args, &screen{})
		require.Error(t, err)
		require.Equal(t, exitFailed, status)
	}
	out := &screen{}
	status, err := run(t.Context(), []string{"-target", "nodes:///does/not/exist.yaml", "-every", "10ms", "-for", time.Second.String()}, out)
	require.NoError(t, err)
	require.Equal(t, exitPlaced, status)
	require.GreaterOrEqual(t, out.saw("/does/not/exist.yaml"), 0, "it says what is wrong: %q", out.lines())
}
