package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// exampleClient is a process of an example that serves its page.
type exampleClient struct {
	*testing.T
	process *exec.Cmd
	addr    string // of the page and the metrics
	output  output
}

// buildProgram returns the path of a program of the root module, or of this one.
func buildProgram(t *testing.T, dir string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), filepath.Base(dir))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = dir
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

var pageAt = regexp.MustCompile(`(?m)^page http://([^/]+)/`)

// startClient starts the program for as long as the test runs. It must end well
// when it is interrupted.
func startClient(t *testing.T, program string, args ...string) *exampleClient {
	t.Helper()
	c := &exampleClient{T: t, process: exec.Command(program, append(args, "-http", "127.0.0.1:0")...)}
	c.process.Stdout, c.process.Stderr = &c.output, &c.output
	require.NoError(t, c.process.Start())
	t.Cleanup(func() {
		require.NoError(t, c.process.Process.Signal(os.Interrupt))
		require.NoError(t, c.process.Wait(), "%s", &c.output)
	})
	wait(t, "the page's address", func() bool {
		m := pageAt.FindStringSubmatch(c.output.String())
		if m != nil {
			c.addr = m[1]
		}
		return m != nil
	})
	return c
}

// get returns a page of the process.
func (c *exampleClient) get(path, accept string) string {
	c.Helper()
	request, err := http.NewRequestWithContext(c.Context(), http.MethodGet, "http://"+c.addr+path, nil)
	require.NoError(c, err)
	request.Header.Set("Accept", accept)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(c, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(c, err)
	require.Equal(c, http.StatusOK, answer.StatusCode, "%s", body)
	return string(body)
}

// clientPage is the JSON form of the debug page.
type clientPage struct {
	Process  struct{ PID int }
	Services []state.Snapshot
}

func (c *exampleClient) page() (p clientPage) {
	c.Helper()
	require.NoError(c, json.Unmarshal([]byte(c.get("/?format=json", "")), &p))
	return p
}

// nodeFile lists nodes for a client, with a cap for each, 0 for none. A client
// whose nodes are full waits, so that nothing changes.
type nodeFile struct {
	*testing.T
	path string
}

func newNodeFile(t *testing.T) nodeFile { return nodeFile{t, filepath.Join(t.TempDir(), "nodes.yaml")} }

func (f nodeFile) target() string { return "nodes://" + f.path }

func (f nodeFile) list(maxInFlight int, nodes ...*leastconntest.Node) {
	f.Helper()
	text := fmt.Sprintf("serviceConfig: {loadBalancingConfig: [{least_conn: {maxInFlight: %d}}]}\nnodes:\n", maxInFlight)
	for _, n := range nodes {
		text += "- address: " + n.Addr() + "\n"
	}
	require.NoError(f, os.WriteFile(f.path, []byte(text), 0o600))
}

// Two processes show their own load each; together they show what the servers
// handle.
func TestTwoProcessesShowTheirOwn(t *testing.T) {
	program := buildProgram(t, "../examples/client")
	nodes := startNodes(t, "a", "b", "c")
	caps := []int{2, 3}
	var files []nodeFile
	var clients []*exampleClient
	for range caps {
		f := newNodeFile(t)
		f.list(1, nodes[0])
		files = append(files, f)
		clients = append(clients, startClient(t, program, "-target", f.target(), "-every", "10ms"))
	}
	for _, listed := range [][]*leastconntest.Node{nodes[:2], nodes, nodes[1:]} {
		for i, f := range files {
			f.list(caps[i], listed...)
		}
		pages := make([]clientPage, len(clients))
		for i, c := range clients {
			wait(t, "all is full and one waits", func() bool {
				pages[i] = c.page()
				s := pages[i].Services[0]
				return s.Waiting == 1 && full(s, caps[i]) == len(listed)
			})
			require.Contains(t, c.get("/", "text/html"), "in this process")
			require.Contains(t, c.get("/", ""), fmt.Sprintf("in this process (client, pid %d)", c.process.Process.Pid))
			require.Equal(t, c.process.Process.Pid, pages[i].Process.PID)
		}
		sum := map[string]int{}
		for _, p := range pages {
			for _, n := range p.Services[0].Endpoints {
				sum[n.Addresses[0]] += int(n.InFlight)
			}
		}
		for _, n := range nodes {
			require.Equal(t, n.Live(), sum[n.Addr()], n.Name())
		}
		require.Equal(t, caps[0]+caps[1], sum[listed[0].Addr()])
	}
}

// full returns how many nodes are listed, or -1 if one of them does not hold as
// many as it may.
func full(s state.Snapshot, limit int) (listed int) {
	for _, n := range s.Endpoints {
		switch {
		case n.State == state.EndpointDeparted:
		case n.InFlight != int64(limit):
			return -1
		default:
			listed++
		}
	}
	return listed
}
