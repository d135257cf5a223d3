package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// What Prometheus has scraped from a client is what the servers handle and
// have handled. The client waits at its caps, so that there is time to compare.
func TestPrometheusScrapesTheExample(t *testing.T) {
	nodes := startNodes(t, "a", "b", "c")
	file := newNodeFile(t)
	file.list(3, nodes[:2]...)
	c := startClient(t, buildProgram(t, "metrics"), "-target", file.target(), "-every", "10ms")
	p := startPrometheus(t, c.addr)
	metric := func(name string) string {
		return fmt.Sprintf("grpc_lb_least_conn_%s{instance=%q,grpc_target=%q}", name, c.addr, file.target())
	}
	// agree waits until all that was scraped is what seen nodes handle and all have
	// handled, and the endpoints have these states.
	agree := func(ready, departed float64, seen ...*leastconntest.Node) {
		t.Helper()
		p.until("Prometheus and the servers agree", func(now *assert.CollectT) {
			picks := 0
			for _, n := range nodes {
				picks += n.Started()
			}
			p.answers(now, handled(seen...), "grpc_lb_least_conn_endpoint", metric("in_flight"))
			p.answers(now, map[string]float64{"ready": ready, "draining": 0, "not_ready": 0, "departed": departed},
				"grpc_lb_least_conn_state", metric("endpoints"))
			started := map[string]float64{}
			for _, n := range nodes {
				if n.Started() > 0 {
					started[n.Addr()] = float64(n.Started())
				}
			}
			p.answers(now, started, "grpc_lb_least_conn_endpoint", metric("picks_total")+" > 0")
			for name, value := range map[string]int{
				"picks_total": picks, "queue_length": 1, "imbalance": 0, "double_releases_total": 0, "penalties_total": 0,
			} {
				p.answers(now, map[string]float64{file.target(): float64(value)}, "grpc_target", "sum by (grpc_target) ("+metric(name)+")")
			}
		})
		dashboard(t).runs(p, c.addr, file.target())
	}
	hold := func(counts ...int) {
		t.Helper()
		for i, n := range nodes {
			require.NoError(t, n.WaitLive(t.Context(), counts[i]))
		}
	}

	hold(3, 3, 0)
	agree(2, 0, nodes[:2]...)

	file.list(3, nodes...)
	hold(3, 3, 3)
	agree(3, 0, nodes...)

	file.list(3, nodes[1:]...)
	agree(2, 1, nodes...)
	file.list(4, nodes[1:]...)
	hold(3, 4, 4)
	agree(2, 1, nodes...)

	nodes[0].EndStreams()
	hold(0, 4, 4)
	agree(2, 0, nodes[1:]...)

	last := fmt.Sprintf(`grpc_lb_least_conn_in_flight{grpc_lb_least_conn_endpoint=%q,grpc_target=%q} 3`, nodes[1].Addr(), file.target())
	require.Contains(t, c.output.String(), last+"\n", "what the example prints")
}

// The document shows the code with which the example turns the metrics on, byte
// by byte.
func TestVerifyDocTurnsMetricsOn(t *testing.T) {
	source, err := os.ReadFile("metrics/dial.go")
	require.NoError(t, err)
	code, found := strings.CutPrefix(string(source), "package main\n\n")
	require.True(t, found)
	doc, err := os.ReadFile("../docs/verify.md")
	require.NoError(t, err)
	require.Contains(t, string(doc), "```text\n"+code+"```\n")
}
