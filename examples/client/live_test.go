package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server that is written into the node file takes the next sessions; one that
// stops loses its sessions, and the others take new ones.
func TestLiveSessionsFollowTheNodeFile(t *testing.T) {
	nodes := startNodes(t, "a", "b")
	file := newNodeFile(t, "", nodes[0])
	r := start(t, "-target", file.target(), "-every", "10ms")
	r.see("a 4")
	file.list(nodes...)
	r.see("b 4")
	for _, line := range r.see("new session on b")[:4] {
		require.Contains(t, line, "new session on b", "the new server takes the next ones until it is level")
	}
	nodes[0].Stop()
	r.see("session ended on a")
}

// The fleet's third server takes the sessions that come after it until it is
// level; then the oldest end, and b leaves the list and returns.
func TestLiveFleet(t *testing.T) {
	r := start(t, "-http", "127.0.0.1:0", "-every", "5ms")
	r.see("c 6")
	for _, line := range r.see("new session on c")[:6] {
		require.Contains(t, line, "new session on c")
	}
	r.see("b leaves the list")
	r.see("b returns")
	r.wait("30 are left, and b is level", func() bool {
		lines := strings.Split(strings.TrimSpace(r.text()), "\n")
		var a, b, c int
		_, line, _ := strings.Cut(lines[len(lines)-1], "a ")
		_, err := fmt.Sscanf(line, "%d  b %d  c %d", &a, &b, &c)
		return err == nil && a+b+c <= fleetHolds+1 && b >= 9
	})
	require.NotContains(t, r.text(), "refused")
	require.NotContains(t, r.text(), "no session")
}

// What keeps sessions from opening is said, and they are tried again.
func TestLiveSaysWhatIsWrong(t *testing.T) {
	r := start(t, "-target", "nodes:///does/not/exist.yaml", "-every", "10ms")
	r.see("no session: ")
	require.Contains(t, r.see("/does/not/exist.yaml")[0], "no session: ")
	r.wait("another try", func() bool { return len(r.see("no session: ")) > 2 })
}

// A session that no server has room for keeps the others waiting, and nothing
// else.
func TestLiveWaitsForRoom(t *testing.T) {
	nodes := startNodes(t, "a", "b")
	file := newNodeFile(t, held(2), nodes[0])
	r := start(t, "-target", file.target(), "-every", "10ms", "-watch")
	r.wait("a session waits", func() bool { return waiting(r.frame()) == 1 })
	for range 3 {
		shown := len(r.text())
		r.wait("frames go on", func() bool { return len(r.text()) > shown })
	}
	nodes[0].EndStreams()
	r.wait("others take the places", func() bool { return nodes[0].Started() == 4 })
	file.list(nodes...)
	r.wait("b has room", func() bool { return nodes[1].Live() == 2 })
}
