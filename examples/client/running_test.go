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

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// running is the program while it runs, and what it has printed so far.
type running struct {
	*testing.T
	stop func() // ends it and waits

	mu     sync.Mutex
	output bytes.Buffer
}

// start runs the program until stop, or the end of the test. It must end well.
func start(t *testing.T, args ...string) *running {
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{T: t}
	var over sync.WaitGroup
	var status int
	var err error
	over.Go(func() { status, err = run(ctx, args, r) })
	r.stop = sync.OnceFunc(func() {
		cancel()
		over.Wait()
		require.NoError(t, err)
		require.Equal(t, exitPlaced, status)
	})
	t.Cleanup(r.stop)
	return r
}

// Write keeps what is printed.
func (r *running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.Write(p)
}

func (r *running) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.String()
}

// see waits for a line with the text, and returns it and those after it.
func (r *running) see(text string) (lines []string) {
	r.Helper()
	r.wait(text, func() bool {
		all := r.text()
		at := strings.Index(all, text)
		if at < 0 {
			return false
		}
		lines = strings.Split(all[strings.LastIndex(all[:at], "\n")+1:], "\n")
		return true
	})
	return lines
}

func (r *running) wait(what string, condition func() bool) {
	r.Helper()
	require.NoError(r, leastconntest.WaitFor(context.Background(), what, condition), "%s", r.text())
}

// frame is the last one that is complete, "" before the first.
func (r *running) frame() string {
	frames := strings.Split(r.text(), "least_conn in this process")
	if len(frames) < 3 {
		return ""
	}
	return frames[len(frames)-2]
}

// startNodes starts servers for as long as the test runs.
func startNodes(t *testing.T, names ...string) []*leastconntest.Node {
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, names...)
	require.NoError(t, err)
	t.Cleanup(func() { leastconntest.CloseNodes(nodes...) })
	return nodes
}

// nodeFile is a list of servers that the program follows.
type nodeFile struct {
	*testing.T
	path string
	head string // what stands before the nodes
}

func newNodeFile(t *testing.T, head string, nodes ...*leastconntest.Node) nodeFile {
	f := nodeFile{t, filepath.Join(t.TempDir(), "nodes.yaml"), head}
	f.list(nodes...)
	return f
}

func (f nodeFile) target() string { return "nodes://" + f.path }

func (f nodeFile) list(nodes ...*leastconntest.Node) {
	text := f.head + "nodes:\n"
	for _, n := range nodes {
		text += fmt.Sprintf("- address: %s\n", n.Addr())
	}
	require.NoError(f, os.WriteFile(f.path, []byte(text), 0o600))
}

// held is a head that lets each server hold n sessions; then the program waits.
func held(n int) string {
	return fmt.Sprintf("serviceConfig: {loadBalancingConfig: [{least_conn: {maxInFlight: %d}}]}\n", n)
}
