package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// watching is the program while it draws, and what it has drawn so far.
type watching struct {
	*testing.T
	stop func() // ends it and waits

	mu     sync.Mutex
	output bytes.Buffer
}

// startWatch runs the program until stop, or the end of the test. It must end well.
func startWatch(t *testing.T, args ...string) *watching {
	ctx, cancel := context.WithCancel(t.Context())
	w := &watching{T: t}
	status := make(chan int, 1)
	go func() { status <- run(ctx, append([]string{"-watch", "-every", "10ms"}, args...), w, w) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		require.Equal(t, exitExact, <-status, w.text())
	})
	t.Cleanup(w.stop)
	return w
}

// Write keeps what is printed.
func (w *watching) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.output.Write(p)
}

func (w *watching) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.output.String()
}

// frames are those that are complete.
func (w *watching) frames() []string {
	frames := strings.Split(w.text(), "least_conn in this process")
	return frames[1:max(1, len(frames)-1)]
}

// see waits for a frame that is as it should be, and returns it.
func (w *watching) see(what string, condition func(frame string) bool) (frame string) {
	w.Helper()
	require.NoError(w, leastconntest.WaitFor(context.Background(), what, func() bool {
		if all := w.frames(); len(all) > 0 {
			frame = all[len(all)-1]
		}
		return condition(frame)
	}), "%s", frame)
	return frame
}

// nodeFile is a list of servers that each hold n sessions at most; then the program waits.
type nodeFile struct {
	*testing.T
	path string
	held int
}

func newNodeFile(t *testing.T, held int, nodes ...*leastconntest.Node) nodeFile {
	f := nodeFile{t, filepath.Join(t.TempDir(), "nodes.yaml"), held}
	f.list(nodes...)
	return f
}

func (f nodeFile) list(nodes ...*leastconntest.Node) {
	text := fmt.Sprintf("serviceConfig: {loadBalancingConfig: [{least_conn: {maxInFlight: %d}}]}\nnodes:\n", f.held)
	for _, n := range nodes {
		text += fmt.Sprintf("- address: %s\n", n.Addr())
	}
	require.NoError(f, os.WriteFile(f.path, []byte(text), 0o600))
}

// The table has the figures of the servers, and their names. A session that no server has room for keeps the others
// waiting, and nothing else.
func TestWatchShowsTheLoad(t *testing.T) {
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, "a", "b", "c")
	require.NoError(t, err)
	t.Cleanup(func() { leastconntest.CloseNodes(nodes...) })
	file := newNodeFile(t, 3, nodes[:2]...)
	w := startWatch(t, "-target", "nodes://"+file.path)
	w.see("both are full", func(frame string) bool {
		return strings.Contains(frame, "6 in flight, 1 waiting, spread 0\n")
	})
	shown := len(w.frames())
	w.see("frames go on", func(string) bool { return len(w.frames()) > shown+2 })
	file.list(nodes...)
	frame := w.see("all are full", func(frame string) bool {
		rows := loadRows(t, frame)
		return strings.Contains(frame, "9 in flight, 1 waiting, spread 0\n") && rows[nodes[2].Addr()].server == "c"
	})
	rows := loadRows(t, frame)
	require.Len(t, rows, 3)
	for _, n := range nodes {
		want := loadRow{server: n.Name(), endpoint: n.Addr(), state: "ready", weight: "1", inFlight: n.Live(), picks: n.Started(), score: "-", bar: "███"}
		require.Equal(t, want, rows[n.Addr()])
	}
	nodes[0].Stop()
	w.see("a is gone", func(frame string) bool {
		row := loadRows(t, frame)[nodes[0].Addr()]
		return row.state == "not ready" && row.inFlight == 0 && row.score == "-" && row.bar == ""
	})
	w.stop()
	require.Contains(t, w.text()[strings.LastIndex(w.text(), "least_conn in this process"):], nodes[1].Addr(), "the last frame is from before the end")
}

// The fleet's third server joins later and becomes level; then the oldest sessions end, and b leaves the list and returns.
func TestWatchFleet(t *testing.T) {
	w := startWatch(t, "-every", "50ms")
	inFlight := func(frame string) (sum, least int, bState string) {
		least = fleetHolds
		for _, row := range loadRows(t, frame) {
			sum, least = sum+row.inFlight, min(least, row.inFlight)
			if row.server == "b" {
				bState = row.state
			}
		}
		return sum, least, bState
	}
	w.see("the third is level", func(frame string) bool {
		sum, least, _ := inFlight(frame)
		return len(loadRows(t, frame)) == 3 && sum-3*least <= 2
	})
	require.Len(t, loadRows(t, w.frames()[0]), 2, "it is not there at first")
	w.see("b leaves the list", func(frame string) bool {
		_, _, b := inFlight(frame)
		return b == "departed"
	})
	w.see("b returns, 30 are left and all are level", func(frame string) bool {
		sum, least, b := inFlight(frame)
		return b == "ready" && sum == fleetHolds && least >= 9
	})
	require.NotContains(t, w.text(), "refused")
	require.NotContains(t, w.text(), "no session")
}

// What keeps sessions from opening is said, and they are tried again.
func TestWatchSaysWhatIsWrong(t *testing.T) {
	w := startWatch(t, "-target", "nodes:///does/not/exist.yaml")
	w.see("another try", func(frame string) bool { return strings.Count(frame, "no session: ") > 2 })
	require.Contains(t, w.text(), "/does/not/exist.yaml")
}

// With -reports the servers are asked, and the sum of what they have is what the sessions hold: there are no others.
func TestWatchWithReports(t *testing.T) {
	w := startWatch(t, "-every", "50ms", "-reports", "100ms")
	reported := regexp.MustCompile(`(?m)^([abc]) +\S+ +ready +(\d+) +0 +\d\.\ds `)
	w.see("all have reported", func(frame string) bool {
		return strings.Contains(frame, ", of the fleet ") && len(reported.FindAllString(frame, -1)) == 3
	})
}
