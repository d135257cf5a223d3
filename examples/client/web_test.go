package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

var pageAt = regexp.MustCompile(`^page (http://\S+/)  metrics (http://\S+/metrics)$`)

// site returns the addresses that the program prints.
func (r *running) site() (page, metrics string) {
	line := r.see("page http://")[0]
	m := pageAt.FindStringSubmatch(line)
	require.NotNil(r, m, line)
	return m[1], m[2]
}

func (r *running) get(url, accept string) (header http.Header, body string) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, url, nil)
	require.NoError(r, err)
	request.Header.Set("Accept", accept)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(r, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(r, err)
	require.Equal(r, http.StatusOK, answer.StatusCode, "%s", text)
	return answer.Header, string(text)
}

// The page and the metrics say what the servers do.
func TestD88PageAndMetrics(t *testing.T) {
	nodes := startNodes(t, "a", "b")
	file := newNodeFile(t, held(3), nodes...)
	r := start(t, "-target", file.target(), "-every", "10ms", "-http", "127.0.0.1:0")
	page, metrics := r.site()
	r.wait("a session waits", func() bool {
		_, text := r.get(metrics, "")
		return strings.Contains(text, fmt.Sprintf("queue_length{grpc_target=%q,grpc_lb_locality=\"\"} 1\n", file.target()))
	})

	header, text := r.get(metrics, "")
	require.Equal(t, "text/plain; version=0.0.4; charset=utf-8", header.Get("Content-Type"))
	series := func(name, more string, value int) {
		t.Helper()
		require.Contains(t, text, fmt.Sprintf("\ngrpc_lb_least_conn_%s{grpc_target=%q,%s} %d\n", name, file.target(), more, value))
	}
	for _, n := range nodes {
		series("in_flight", fmt.Sprintf(`grpc_lb_locality="",grpc_lb_least_conn_endpoint=%q`, n.Addr()), n.Live())
	}
	series("in_flight", `grpc_lb_locality="",grpc_lb_least_conn_endpoint=""`, 6)
	series("picks_total", `grpc_lb_locality=""`, nodes[0].Started()+nodes[1].Started())
	series("picks_queued_total", `grpc_lb_locality=""`, 1)

	header, text = r.get(page, "text/html")
	require.Contains(t, header.Get("Content-Security-Policy"), "default-src 'none'")
	require.Contains(t, text, "in this process")
	require.Contains(t, text, nodes[0].Addr())
	for _, asset := range []string{"page.css", "page.js"} {
		require.Contains(t, text, "?asset="+asset)
		r.get(page+"?asset="+asset, "")
	}
	_, text = r.get(page+"?format=text", "")
	require.Contains(t, text, "least_conn in this process")
	_, text = r.get(page+"?format=json", "")
	var shown struct{ Services []state.Snapshot }
	require.NoError(t, json.Unmarshal([]byte(text), &shown))
	require.Equal(t, state.Snapshots()[0].InFlight, shown.Services[0].InFlight)

	answer, err := http.Get(page + "elsewhere")
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, http.StatusNotFound, answer.StatusCode)
	r.stop()
	_, err = http.Get(page)
	require.Error(t, err, "it has ended with the program")
}

// The table says where the page is, and both show the fleet.
func TestWatchWithPage(t *testing.T) {
	r := start(t, "-watch", "-http", "127.0.0.1:0", "-every", "10ms")
	page, _ := r.site()
	r.wait("the table names the page", func() bool { return strings.Contains(r.frame(), ", page "+page) })
	r.wait("all three servers", func() bool { return len(table(t, r.frame())) == 3 })
	_, text := r.get(page+"?format=text", "")
	for endpoint := range table(t, r.frame()) {
		require.Contains(t, text, endpoint)
	}
}
