package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

// printed is what the program has printed so far.
type printed struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Write(b)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.String()
}

// start runs the program until the test ends. It must end well.
func start(t *testing.T, args ...string) (out *printed) {
	out = &printed{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, args, out) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return out
}

func (p *printed) wait(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, leastconntest.WaitFor(context.Background(), text, func() bool { return strings.Contains(p.String(), text) }), p)
}

func startNodes(t *testing.T, names ...string) []*leastconntest.Node {
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, names...)
	require.NoError(t, err)
	t.Cleanup(func() { leastconntest.CloseNodes(nodes...) })
	return nodes
}

func TestNextStreamsGoToTheNewServer(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), nil, &out))
	require.Equal(t, strings.Join([]string{
		"streams held by          a   b   c   d",
		"12 open over a, b, c     4   4   4   0",
		"d joins                  4   4   4   0",
		"4 more open              4   4   4   4",
		"4 more open              5   5   5   5",
		"",
	}, "\n"), out.String())
}

// A server that is written into the node file takes the next streams, and the page shows it. One that stops loses its
// streams.
func TestStreamsFollowTheTarget(t *testing.T) {
	nodes := startNodes(t, "a", "b")
	file := filepath.Join(t.TempDir(), "nodes.yaml")
	list := func(nodes ...*leastconntest.Node) {
		text := "nodes:\n"
		for _, n := range nodes {
			text += fmt.Sprintf("- address: %s\n", n.Addr())
		}
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	list(nodes[0])
	out := start(t, "-target", "nodes://"+file, "-every", "10ms", "-http", "127.0.0.1:0")
	out.wait(t, "new stream on a          a 4\n")
	list(nodes...)
	out.wait(t, "  b 4\n")

	answer, err := http.Get(regexp.MustCompile(`page (\S+)`).FindStringSubmatch(out.String())[1] + "?format=text")
	require.NoError(t, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Contains(t, string(page), nodes[1].Addr())
	nodes[0].Stop()
	out.wait(t, "stream ended on a")
}

func TestStreamsMoveToTheNewServer(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-move"}, &out))
	require.Regexp(t, strings.Join([]string{
		`^streams held by          a   b   c   d`,
		`12 open over a, b, c     4   4   4   0`,
		`d joins                  4   4   4   0`,
		`one moves from [abc] to d  .*   1`,
		`one moves from [abc] to d  .*   2`,
		`one moves from [abc] to d    3   3   3   3`,
		`$`,
	}, "\n"), out.String())
}

// Streams leave a server that is not listed any more.
func TestStreamsMoveWithTheTarget(t *testing.T) {
	nodes := startNodes(t, "a", "b")
	file := filepath.Join(t.TempDir(), "nodes.yaml")
	list := func(of *leastconntest.Node) {
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "nodes:\n- address: %s\n", of.Addr()), 0o600))
	}
	list(nodes[0])
	out := start(t, "-target", "nodes://"+file, "-every", "10ms", "-move")
	out.wait(t, "new stream on a          a 40\n")
	list(nodes[1])
	out.wait(t, "stream moved to b")
	require.NotContains(t, out.String(), "ended")
}

func TestListOfAddresses(t *testing.T) {
	nodes := startNodes(t, "a", "b")
	start(t, "-target", nodes[0].Addr()+","+nodes[1].Addr(), "-every", "1ms")
	for _, n := range nodes {
		require.NoError(t, leastconntest.WaitFor(t.Context(), "streams", func() bool { return n.Live() > 5 }))
	}
}

func TestWrongFlagsAreNamed(t *testing.T) {
	taken := startNodes(t, "")[0].Addr()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-every", "0s"}, "-every is 0s, want more than 0"},
		{[]string{"-for", "-1s"}, "-for is -1s, want 0 or more"},
		{[]string{"surplus"}, "surplus"},
		{[]string{"-http", taken}, `-http is "` + taken + `"`},
		{[]string{"-target", "dns:///%zz"}, `-target is "dns:///%zz"`},
	} {
		require.ErrorContains(t, run(t.Context(), c.args, io.Discard), c.want)
	}
}
