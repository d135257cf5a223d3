package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/resolver"
)

const alertsFile = "../docs/alerts.yaml"

// Prometheus's own tool takes the alerts, and they say what they should of an hour of numbers.
func TestAlertsAreRight(t *testing.T) {
	promtool := lookup(t, "promtool", "apt-get install prometheus, or put the program into PATH")
	for _, args := range [][]string{{"check", "rules", alertsFile}, {"test", "rules", "testdata/alerts_test.yaml"}} {
		out, err := exec.Command(promtool, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	rules, err := os.ReadFile(alertsFile)
	require.NoError(t, err)
	tests, err := os.ReadFile("testdata/alerts_test.yaml")
	require.NoError(t, err)
	for _, alert := range regexp.MustCompile(`(?m)^  - alert: (\w+)$`).FindAllStringSubmatch(string(rules), -1) {
		require.Contains(t, string(tests), fmt.Sprintf("alertname=%q", alert[1]), "it is tested")
	}
}

// scrapePeriod is so long that a busy machine answers in it, too.
const scrapePeriod = 2 * time.Second

// hurried is the alerts' file with two scrapes for a minute, and little patience.
func hurried(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(alertsFile)
	require.NoError(t, err)
	text = regexp.MustCompile(`for: \d+m`).ReplaceAll(text, []byte("for: 1s"))
	text = regexp.MustCompile(`\[\d+[mh]\]`).ReplaceAllFunc(text, func(window []byte) []byte {
		d, err := time.ParseDuration(string(window[1 : len(window)-1]))
		require.NoError(t, err)
		return fmt.Appendf(nil, "[%.0fs]", 2*scrapePeriod.Seconds()*d.Minutes())
	})
	path := filepath.Join(t.TempDir(), "alerts.yaml")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// services are channels of one process, each with a target and a state of its own.
type services struct {
	*telemetry
	acting sync.WaitGroup
	ctx    context.Context
}

// open opens a channel to nodes of the names and waits until it can use them.
func (s *services) open(target, config string, names ...string) (*env, []*leastconntest.Node) {
	s.Helper()
	ns := startNodes(s.T, names...)
	return s.openTo(target, config, ns...), ns
}

func (s *services) openTo(target, config string, ns ...*leastconntest.Node) *env {
	s.Helper()
	e := s.dial(leastconntest.ChannelConfig{Target: target, ServiceConfig: `{"loadBalancingConfig":[{"least_conn":` + config + `}]}`}, ns...)
	e.waitReady(all(ns...)...)
	return e
}

// steadily does something again and again until the test ends.
func (s *services) steadily(pause time.Duration, do func()) {
	s.acting.Go(func() {
		for s.ctx.Err() == nil {
			do()
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
			}
		}
	})
}

// Each opens services, and returns what happens to them once all are open; nil for nothing.

// healthy is a service with an endpoint that is full, one that starts slowly and one that drains,
// while one has many RPCs.
func (s *services) healthy() (begin func()) {
	e, ns := s.open("healthy", `{"slowStart":{"window":"600s"}}`, "full", "busy", "draining")
	full := resolver.SetMaxInFlight(ns[0].Endpoint(), 2)
	require.NoError(s, e.channel.Update(full, ns[1].Endpoint(), ns[2].Endpoint()))
	e.hold(12, map[string]int{"full": 2, "busy": 5, "draining": 5})
	slow := startNodes(s.T, "slow")[0]
	require.NoError(s, e.channel.Update(full, ns[1].Endpoint(), resolver.SetWeight(ns[2].Endpoint(), 0), slow.Endpoint()))
	e.waitReady(slow)
	e.hold(11, map[string]int{"busy": 10, "slow": 1})
	return nil
}

func (s *services) uneven() (begin func()) {
	e, ns := s.open("uneven", `{}`, "a")
	e.hold(10, map[string]int{"a": 10})
	e.list(ns[0], startNodes(s.T, "b")[0])
	return nil
}

// ofOthers are what reports tell: others load one server, and one says nothing. A server is silent after three intervals,
// which is longer than a busy machine keeps one from reporting.
func (s *services) ofOthers() (begin func()) {
	a, b := startReportingNode(s.T, "a"), startReportingNode(s.T, "b")
	dialReady(s.T, a).hold(10, map[string]int{"a": 10})
	fleet := s.openTo("uneven-fleet", `{"reports":{"interval":"1s"}}`, a, b)
	wait(s.T, "both report", func() bool { return fleet.endpoint(a).Report().Told && fleet.endpoint(b).Report().Told })
	s.open("silent", `{"reports":{"interval":"1s"}}`, "a")
	return nil
}

func (s *services) noneReady() (begin func()) {
	_, ns := s.open("none-ready", `{}`, "a")
	return ns[0].Stop
}

// waiting has many RPCs that wait, and ever more.
func (s *services) waiting() (begin func()) {
	e, _ := s.open("queue", `{"maxInFlight":1,"maxQueued":100000}`, "a")
	e.hold(1, map[string]int{"a": 1})
	another := func() { s.acting.Go(func() { _, _ = e.channel.Open(s.ctx) }) }
	return func() {
		for range 100 {
			another()
		}
		s.steadily(200*time.Millisecond, another)
	}
}

func (s *services) failing() (begin func()) {
	e, ns := s.open("failing", `{"failurePenalty":"0.1s"}`, "a", "b")
	return func() {
		ns[0].SetFail(codes.Unavailable)
		s.steadily(20*time.Millisecond, func() { _, _ = e.unary() })
	}
}

// deaf has streams of sessions that stay where they are when they should move.
func (s *services) deaf() (begin func()) {
	e, ns := s.open("deaf", `{"rebalance":{"drainWithin":"0s"}}`, "a", "b")
	for range 4 {
		ctx, _ := new(leastconnbalancer.Session).Next(e.ctx)
		_, err := e.channel.Open(ctx)
		require.NoError(s, err)
	}
	return func() {
		require.NoError(s, e.channel.Update(resolver.SetWeight(ns[0].Endpoint(), 0), ns[1].Endpoint()))
	}
}

// doubly has a policy above that reports ends twice.
func (s *services) doubly() (begin func()) {
	n := startNodes(s.T, "a")[0]
	e := s.dial(leastconntest.ChannelConfig{Target: "double", ServiceConfig: `{"loadBalancingConfig":[{"` + doublePolicy + `":{}}]}`}, n)
	e.waitReady(n)
	return func() { s.steadily(20*time.Millisecond, func() { _, _ = e.unary() }) }
}

// Each alert fires where what it is for is so, as Prometheus scrapes it of a process, and no
// other does: none for a healthy service, however uneven its endpoints' loads are meant to be.
func TestAlertsFire(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &services{telemetry: newTelemetry(t, endpointLabel), ctx: ctx}
	t.Cleanup(s.acting.Wait)
	t.Cleanup(cancel)
	var begins []func()
	for _, open := range []func() func(){s.healthy, s.doubly, s.deaf, s.uneven, s.ofOthers, s.noneReady, s.waiting, s.failing} {
		if begin := open(); begin != nil {
			begins = append(begins, begin)
		}
	}
	// Only now, as none is ready while it connects.
	p := startPrometheusWith(t, hurried(t), scrapePeriod, strings.TrimPrefix(s.page.URL, "http://"))
	p.until("the first scrape", func(now *assert.CollectT) { assert.NotEmpty(now, p.query(now, exported+"endpoints")) })
	for _, begin := range begins {
		begin()
	}
	want := map[string]bool{
		"LeastConnUneven uneven": true, "LeastConnFleetUneven uneven-fleet": true, "LeastConnSilentEndpoints silent": true,
		"LeastConnNoEndpointReady none-ready": true, "LeastConnQueueLong queue": true, "LeastConnQueueGrows queue": true,
		"LeastConnFailing failing": true, "LeastConnMovesGivenUp deaf": true, "LeastConnDoubleReleases double": true,
	}
	p.until("all alerts have fired", func(now *assert.CollectT) {
		fired := map[string]bool{}
		for _, a := range p.query(now, `count by (alertname, grpc_target) (count_over_time(ALERTS{alertstate="firing"}[1h]))`) {
			fired[a.Metric["alertname"]+" "+strings.TrimPrefix(a.Metric["grpc_target"], leastconntest.Scheme+":///")] = true
		}
		assert.Equal(now, want, fired)
	})
	require.Empty(t, p.query(t, `count_over_time(ALERTS{grpc_target=~".*healthy"}[1h])`), "nor was one about to")
}
