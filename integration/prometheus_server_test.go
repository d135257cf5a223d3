package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// prometheusServer is a Prometheus on loopback.
type prometheusServer struct {
	*testing.T
	url string
}

// startPrometheus starts one that scrapes /metrics of the addresses, for as long
// as the test runs.
func startPrometheus(t *testing.T, addrs ...string) *prometheusServer {
	t.Helper()
	return startPrometheusWith(t, "", time.Second, addrs...)
}

// startPrometheusWith starts one that has a file of rules, too, and does all once in a period, which has to be long enough
// for a scrape.
func startPrometheusWith(t *testing.T, rules string, period time.Duration, addrs ...string) *prometheusServer {
	t.Helper()
	program := lookup(t, "prometheus", "apt-get install prometheus, or put the program into PATH")
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
global: {scrape_interval: %v, scrape_timeout: %[1]v, evaluation_interval: %[1]v}
rule_files: [%[2]q]
scrape_configs: [{job_name: test, static_configs: [{targets: ["%[3]s"]}]}]
`, period, rules, strings.Join(addrs, `", "`)), 0o600))
	addr := reserveAddr(t)
	p := &prometheusServer{t, "http://" + addr}
	c := exec.Command(program, "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", addr, "--log.level", "warn")
	startProcess(t, c, syscall.SIGTERM).until("be ready", func() bool {
		answer, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return p
}

// Questions to Prometheus are asked again until the answer is right, but not all
// the time: it has to scrape, too.
const pollPeriod = 100 * time.Millisecond

// ask returns what the API answers.
func (p *prometheusServer) ask(t require.TestingT, path string, query url.Values, data any) {
	answer, err := http.Get(p.url + path + "?" + query.Encode())
	require.NoError(t, err)
	defer answer.Body.Close()
	said := struct {
		Status, Error string
		Data          any
	}{Data: data}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&said))
	require.Equal(t, "success", said.Status, "%s: %s", query, said.Error)
}

// series is one that a query has found, with its value now.
type series struct {
	Metric map[string]string
	Value  [2]any
}

// query returns the answer to a PromQL query that has a vector for one.
func (p *prometheusServer) query(t require.TestingT, expr string) []series {
	var data struct {
		ResultType string
		Result     []series
	}
	p.ask(t, "/api/v1/query", url.Values{"query": {expr}}, &data)
	require.Equal(t, "vector", data.ResultType, expr)
	return data.Result
}

// by returns the answer by a label; series that differ in others only are an
// error.
func (p *prometheusServer) by(t require.TestingT, label, expr string) map[string]float64 {
	values := map[string]float64{}
	for _, s := range p.query(t, expr) {
		key := s.Metric[label]
		require.NotContains(t, values, key, "%s: two series with the same %s", expr, label)
		var err error
		values[key], err = strconv.ParseFloat(s.Value[1].(string), 64)
		require.NoError(t, err, expr)
	}
	return values
}

// until waits until all that check asks for is so.
func (p *prometheusServer) until(what string, check func(c *assert.CollectT)) {
	p.Helper()
	require.EventuallyWithT(p, check, patience, pollPeriod, what)
}

// answers checks a query's answer by a label.
func (p *prometheusServer) answers(c *assert.CollectT, want map[string]float64, label, expr string) {
	assert.Equal(c, want, p.by(c, label, expr), expr)
}

// labelValues returns the values that a label has in series that match.
func (p *prometheusServer) labelValues(label, match string) (values []string) {
	p.Helper()
	p.ask(p, "/api/v1/label/"+label+"/values", url.Values{"match[]": {match}}, &values)
	return values
}
