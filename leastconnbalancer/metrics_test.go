package leastconnbalancer_test

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

var metricTypes = map[estats.MetricType]string{
	estats.MetricTypeIntCount:      "counter",
	estats.MetricTypeIntAsyncGauge: "gauge",
}

// Dashboards and alerts name metrics, labels and units: they stay as they are.
func TestMetricsAreStable(t *testing.T) {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(leastconnbalancer.Metrics().Metrics())) {
		d := estats.DescriptorForMetric(name)
		require.NotNil(t, d, name)
		require.False(t, d.Default, "%s is off until it is named", name)
		require.NotEmpty(t, d.Description, name)
		lines = append(lines, fmt.Sprintf("%s %s %s; labels %s; optional %s\n",
			d.Name, metricTypes[d.Type], d.Unit, strings.Join(d.Labels, ", "), strings.Join(d.OptionalLabels, ", ")))
	}
	golden, err := os.ReadFile("testdata/metrics.txt")
	require.NoError(t, err)
	require.Equal(t, string(golden), strings.Join(lines, ""))
}

// states is what the gauge of endpoints shows.
func states(ready, draining, notReady, departed int) map[string]int {
	return map[string]int{"ready": ready, "draining": draining, "not_ready": notReady, "departed": departed}
}

// What gauges and counters show as RPCs and endpoints come and go: what the
// servers handle, and which series there are.
func TestMetricsOfAChannel(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c", "d")
	a, b, c, d := ns[0].Addr(), ns[1].Addr(), ns[2].Addr(), ns[3].Addr()
	cfg, r := recorded(quickly())
	ch := e.dialWith(cfg, ns...)
	seen := map[string]bool{}
	for _, s := range r.Collect() {
		if strings.HasPrefix(s.Metric.Name, metric("")) {
			seen[s.Metric.Name] = true
			require.Equal(t, ch.Conn().CanonicalTarget(), s.Label(targetLabel), s.Metric.Name)
		}
	}
	for _, name := range []string{"others_in_flight", "report_age", "silent_endpoints", "fleet_imbalance"} {
		require.False(t, seen[metric(name)], "%s is there with reports only", name)
		seen[metric(name)] = true
	}
	require.False(t, seen[metric("max_in_flight")], "nobody has a cap")
	seen[metric("max_in_flight")] = true
	require.Equal(t, leastconnbalancer.Metrics().Metrics(), seen, "Metrics leaves out none")
	ch.calls(4)
	held, _ := ch.hold(6)
	require.Equal(t, map[string]int{"picks": 10}, r.counters())
	handled := map[string]int{"": 6}
	for _, n := range ns {
		handled[n.Addr()] = n.Live()
	}
	require.Equal(t, handled, r.inFlight())
	leastconntest.CancelAll(held)
	require.Equal(t, map[string]int{"": 0, a: 0, b: 0, c: 0, d: 0}, r.inFlight())
	held = ch.load(ns, 3, 0, 0, 2)
	require.Equal(t, 3, r.value("imbalance"))
	require.Equal(t, states(4, 0, 0, 0), r.states())
	ns[2].Stop()
	require.NoError(t, ch.Update(ns[0].Endpoint(), lcresolver.SetWeight(ns[1].Endpoint(), 0), ns[2].Endpoint()))
	e.wait("c is not ready", func() bool { return !ch.ready(ns[2]) })
	require.Equal(t, states(1, 1, 1, 1), r.states())
	require.Equal(t, map[string]int{"": 5, a: 3, b: 0, c: 0, d: 2}, r.inFlight())
	require.NoError(t, ns[2].Restart())
	ch.waitReady(ns[2])
	for _, s := range held {
		if s.Node() == "d" {
			require.NoError(t, s.End())
		}
	}
	require.Equal(t, states(2, 1, 0, 0), r.states())
	require.Equal(t, map[string]int{"": 3, a: 3, b: 0, c: 0}, r.inFlight(), "a series ends with the endpoint and its last RPC")
	require.NoError(t, ch.Close())
	require.Empty(t, r.gauges())
}

// An endpoint of several addresses is one series, under the first of them.
func TestSeriesOfAnEndpointIsOne(t *testing.T) {
	e := parallelEnv(t)
	n := e.nodes("a")[0]
	cfg, r := recorded(leastconntest.ChannelConfig{Endpoints: []resolver.Endpoint{under(n, "v6", "v4")}})
	cfg.DialOptions = append(cfg.DialOptions, aliases())
	e.dialWith(cfg).hold(2)
	require.Equal(t, map[string]int{"": 2, under(n, "v4").Addresses[0].Addr: 2}, r.inFlight())
}

// Channels that share a ledger report the same: the load of all of them.
func TestSharedLedgerReportsTheSame(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	cfg, first := recorded(leastconntest.ChannelConfig{Target: e.Name()})
	one := e.dialWith(cfg, ns...)
	cfg, second := recorded(leastconntest.ChannelConfig{Target: e.Name()})
	two := e.dialWith(cfg, ns...)
	one.waitMembers(2, ns...)
	one.hold(3)
	two.hold(2)
	require.Equal(t, 5, first.inFlight()[""])
	e.wait("the same gauges", func() bool { return reflect.DeepEqual(second.gauges(), first.gauges()) }) // ages are in seconds
	require.Equal(t, map[string]int{"picks": 2}, second.counters(), "of the channel itself")
	require.Equal(t, map[string]int{"picks": 3}, first.counters())
}

func TestMetricsOfTheQueue(t *testing.T) {
	e := parallelEnv(t)
	n := e.nodes("a")[0]
	cfg, r := recorded(guarded(leastconnbalancer.Config{MaxInFlight: 1}))
	c := e.dialWith(cfg, n)
	require.Equal(t, 0, r.value("queue_length"))
	held, _ := c.hold(1)
	rpcs := c.queue(3)
	require.Equal(t, 3, r.value("queue_length"))
	require.Equal(t, map[string]int{"picks": 1, "picks_queued": 3}, r.counters())
	require.NoError(t, held[0].End())
	for _, rpc := range rpcs {
		require.NoError(t, (<-rpc).err)
	}
	require.Equal(t, 0, r.value("queue_length"))
	require.Equal(t, map[string]int{"picks": 4, "picks_queued": 3}, r.counters())
}

// Each attempt is a pick. A later one is elsewhere when it avoids the nodes
// tried since the RPC has last started over. One that fails at once leaves a
// penalty, if there is another node.
func TestMetricsOfRetries(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		attempts, nodes int
		want            map[string]int
	}{
		"as many attempts as nodes": {2, 2, map[string]int{"picks": 2, "retries_to_other_endpoint": 1, "penalties": 2}},
		"more attempts than nodes":  {5, 3, map[string]int{"picks": 5, "retries_to_other_endpoint": 3, "penalties": 5}},
		"a single node":             {3, 1, map[string]int{"picks": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			e := parallelEnv(t)
			ns := e.nodes(names(tt.nodes)...)
			cfg, r := recorded(retrying(tt.attempts))
			cfg.ServiceConfig = strings.Replace(cfg.ServiceConfig, `"0s"`, `"60s"`, 1) // the penalty
			c := e.dialWith(cfg, ns...)
			failing(ns...)
			c.failed()
			require.Equal(t, tt.want, r.counters())
			require.Equal(t, 0, r.inFlight()[""], "a penalty is not in flight")
			for _, n := range ns {
				n.SetFail(codes.OK)
			}
			c.calls(10)
			tt.want["picks"] += 10
			require.Equal(t, tt.want, r.counters())
		})
	}
}

// A policy above that reports the end of an attempt twice is found out, and the
// counts stay right; ends after the balancer's are nobody's.
func TestMetricsOfDoubleReleases(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	cfg, r := recorded(leastconntest.ChannelConfig{})
	c := e.dialRecorded(&recordingPolicy{twice: true}, cfg, ns...)
	c.calls(7)
	held, _ := c.hold(4)
	// Each end is reported once more at once, and once more at the next one.
	require.Equal(t, map[string]int{"picks": 11, "double_releases": 7 + 6}, r.counters())
	require.NoError(t, leastconntest.EndAll(held[:3]))
	require.Equal(t, map[string]int{"picks": 11, "double_releases": 10 + 9}, r.counters())
	require.Equal(t, 1, r.inFlight()[""])
	require.NoError(t, c.Close())
	e.wait("all have ended", func() bool { return c.snapshot().InFlight == 0 })
	require.Equal(t, map[string]int{"picks": 11, "double_releases": 10 + 9}, r.counters())
}

// Collections, configurations and ledgers that change, and picks, all at once:
// no pick is lost or counted twice.
func TestMetricsAreExactAmidChanges(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c")
	cfg, r := recorded(leastconntest.ChannelConfig{})
	p := &recordingPolicy{}
	c := e.dialRecorded(p, cfg, ns...)
	callers := c.callers(4)
	var changing sync.WaitGroup
	changing.Go(func() {
		for range 100 {
			r.Collect()
			callers.goOn()
		}
	})
	for i := range 100 {
		cfg := leastconnbalancer.Config{ResourceKey: []string{"", t.Name(), "other " + t.Name()}[i%3], MaxInFlight: uint32(i % 2 * 100)}
		assert.NoError(t, c.UpdateConfig(below(cfg.ServiceConfig()), leastconntest.Endpoints(ns[i%2:]...)...))
		callers.goOn()
	}
	changing.Wait()
	callers.stop()
	require.Equal(t, map[string]int{"picks": int(p.picks.Load())}, r.counters())
	require.NoError(t, c.Close())
	require.Equal(t, map[string]int{"picks": int(p.picks.Load())}, r.counters())
}

// A reporter that a plugin keeps holds no ledger, neither one that the channel
// has left nor that of a closed one, and reports nothing any more.
func TestReporterHoldsNoLedger(t *testing.T) {
	e := newEnv(t)
	ns := e.nodes("a", "b")
	cfg, r := recorded(leastconntest.ChannelConfig{})
	r.keeps = true
	c := e.dialWith(cfg, ns...)
	c.calls(3)
	ledger := c.ledger()
	require.NoError(t, c.UpdateConfig(keyed(e.Name()).ServiceConfig, leastconntest.Endpoints(ns...)...))
	e.collected(ledger)
	c.key = e.Name()
	held, _ := c.hold(2)
	require.NotEmpty(t, r.gauges())
	ledger = c.ledger()
	require.NoError(t, c.UpdateConfig(roundRobin, leastconntest.Endpoints(ns...)...))
	e.wait("the policy is closed", func() bool { return len(r.gauges()) == 0 })
	require.Equal(t, map[string]int{"picks": 5}, r.seen())
	require.NoError(t, leastconntest.EndAll(held))
	e.collected(ledger)
	require.Len(t, r.kept, 1)
	require.NoError(t, c.Close())
}
