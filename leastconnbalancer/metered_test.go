package leastconnbalancer_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	estats "google.golang.org/grpc/experimental/stats"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Labels of the metrics.
const (
	targetLabel   = "grpc.target"
	endpointLabel = "grpc.lb.least_conn.endpoint"
	stateLabel    = "grpc.lb.least_conn.state"
)

// metric returns the full name of one.
func metric(name string) string { return "grpc.lb.least_conn." + name }

// metered adds a recorder of the metrics to a channel's config.
func metered(cfg leastconntest.ChannelConfig) (leastconntest.ChannelConfig, *meters) {
	r := leastconntest.NewRecorder()
	cfg.DialOptions = append(cfg.DialOptions, r.DialOption())
	return cfg, &meters{r}
}

// meters reads the metrics of channels.
type meters struct{ *leastconntest.Recorder }

// value returns that of the only series with the labels, -1 without one.
func (m *meters) value(name string, labels ...string) int {
	v, ok := m.Value(metric(name), labels...)
	if !ok {
		return -1
	}
	return int(v)
}

// inFlight returns what the gauge shows by endpoint, "" for the sum.
func (m *meters) inFlight() map[string]int { return by(m.Collect(), "in_flight", endpointLabel) }

// states returns how many endpoints are in each state.
func (m *meters) states() map[string]int { return by(m.Collect(), "endpoints", stateLabel) }

// counters returns all that have counted something.
func (m *meters) counters() map[string]int {
	values := map[string]int{}
	for _, s := range m.Collect() {
		name, ours := strings.CutPrefix(s.Metric.Name, metric(""))
		if ours && s.Metric.Type == estats.MetricTypeIntCount && s.Value != 0 {
			values[name] += int(s.Value)
		}
	}
	return values
}

// by returns a metric's series by a label.
func by(samples []leastconntest.Sample, name, label string) map[string]int {
	values := map[string]int{}
	for _, s := range samples {
		if s.Metric.Name == metric(name) {
			values[s.Label(label)] += int(s.Value)
		}
	}
	return values
}

// meteredConn is a fake channel with a stats handler.
type meteredConn struct {
	*fakeConn
	recorder estats.MetricsRecorder
}

func (c *meteredConn) MetricsRecorder() estats.MetricsRecorder { return c.recorder }

// newMeteredConn builds the policy in a channel that records.
func newMeteredConn(t *testing.T, recorder estats.MetricsRecorder) *meteredConn {
	c := &meteredConn{&fakeConn{t: t, subConns: map[string]*fakeSubConn{}}, recorder}
	c.balancer = balancer.Get(leastconnbalancer.Name).Build(c, balancer.BuildOptions{})
	t.Cleanup(c.balancer.Close)
	return c
}

// inMeteredTime runs a test on a fake channel that records, in time of its own.
func inMeteredTime(t *testing.T, test func(*testing.T, *meteredConn, *journal)) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		test(t, newMeteredConn(t, j), j)
	})
}

// pick makes one pick and returns its Done.
func (c *meteredConn) pick() func(balancer.DoneInfo) {
	c.t.Helper()
	c.mu.Lock()
	p := c.state.Picker
	c.mu.Unlock()
	res, err := p.Pick(balancer.PickInfo{Ctx: c.t.Context()})
	require.NoError(c.t, err)
	return res.Done
}

// picks makes n picks of RPCs that end at once.
func (c *meteredConn) picks(n int) {
	c.t.Helper()
	for range n {
		c.pick()(balancer.DoneInfo{BytesSent: true, BytesReceived: true})
	}
}
