package leastconnbalancer_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer/xdscluster"
)

const (
	clusterLabel = "grpc.lb.backend_service"
	keyLabel     = "grpc.lb.least_conn.resource_key"
)

// exporter is a plugin that exports some labels only. Of what it is told of one series, the last
// value counts.
type exporter struct {
	labels []string
	values map[string]map[string]int // by metric and labels
}

func (x *exporter) RecordInt64AsyncGauge(h *estats.Int64AsyncGaugeHandle, value int64, values ...string) {
	s := leastconntest.Sample{Metric: h.Descriptor(), Labels: values}
	var kept []string
	for _, name := range x.labels {
		if slices.Contains(s.Names(), name) {
			kept = append(kept, s.Label(name))
		}
	}
	name := strings.TrimPrefix(s.Metric.Name, metric(""))
	if x.values[name] == nil {
		x.values[name] = map[string]int{}
	}
	x.values[name][strings.Join(kept, " ")] = int(value)
}

// exported collects the gauges with some labels.
func (r *countRecorder) exported(labels ...string) map[string]map[string]int {
	r.mu.Lock()
	reporters := slices.Collect(maps.Keys(r.live))
	r.mu.Unlock()
	x := &exporter{labels: labels, values: map[string]map[string]int{}}
	for _, reporter := range reporters {
		_ = (*reporter).Report(x) // which returns none
	}
	return x.values
}

// onServers returns how many streams the nodes handle.
func onServers(ns []*leastconntest.Node) (n int) {
	for _, node := range ns {
		n += node.Live()
	}
	return n
}

// Localities and clusters below one target have gauges of their own endpoints. Without labels
// that tell them apart the gauges are of all of them, each once.
func TestGaugesOfLocalitiesAndClusters(t *testing.T) {
	e := newEnv(t)
	ns := e.nodes("a", "b", "c", "d", "e")
	of := func(i ...int) (eps []resolver.Endpoint) {
		for _, i := range i {
			eps = append(eps, ns[i].Endpoint())
		}
		return eps
	}
	before := localityPolicy
	t.Cleanup(func() { localityPolicy = before })
	localityPolicy.byName = map[string][]resolver.Endpoint{"east": of(0, 1), "west": of(2), "canary": of(1, 3, 4)}
	localityPolicy.clusters = map[string]string{"east": "stable", "west": "stable", "canary": "canary"}
	cfg, r := recorded(leastconntest.ChannelConfig{ServiceConfig: inLocalities(`{}`, "east", "west", "canary")})
	c := e.dialWith(cfg, ns...)
	c.hold(60)
	live := func(i ...int) (n int) {
		for _, i := range i {
			n += ns[i].Live()
		}
		return n
	}
	total := live(0, 1, 2, 3, 4)
	require.Equal(t, 60, total)

	got := r.exported()
	require.Equal(t, map[string]int{"": 60}, got["in_flight"])
	require.Equal(t, map[string]int{"": 0}, got["queue_length"])
	require.Equal(t, map[string]int{"ready": 5, "draining": 0, "not_ready": 0, "departed": 0}, r.exported(stateLabel)["endpoints"])
	most := max(spread(live(0), live(1)), spread(live(1), live(3), live(4)))
	require.Equal(t, map[string]int{"": most}, got["imbalance"])

	require.Equal(t, map[string]int{"east": live(0, 1), "west": live(2), "canary": live(1, 3, 4), "": 60},
		r.exported(localityLabel)["in_flight"])
	require.Equal(t, map[string]int{"east": spread(live(0), live(1)), "west": 0, "canary": spread(live(1), live(3), live(4)), "": most},
		r.exported(localityLabel)["imbalance"])
	require.Equal(t, map[string]int{"stable": live(0, 1, 2), "canary": live(1, 3, 4), "": 60}, r.exported(clusterLabel)["in_flight"])
	require.Equal(t, map[string]int{"stable ready": 3, "canary ready": 3, " ready": 5}, notZero(r.exported(clusterLabel, stateLabel)["endpoints"]))
	byNode := map[string]int{"": 60}
	for _, n := range ns {
		byNode[n.Addr()] = n.Live()
	}
	require.Equal(t, byNode, r.exported(endpointLabel)["in_flight"])
	require.Equal(t, 60, r.by("picks", clusterLabel)["stable"]+r.by("picks", clusterLabel)["canary"])
	require.Len(t, r.live, 1, "one reporter for all of them")
}

func spread(loads ...int) int { return slices.Max(loads) - slices.Min(loads) }

func notZero(m map[string]int) map[string]int {
	maps.DeleteFunc(m, func(_ string, n int) bool { return n == 0 })
	return m
}

// Resource keys under one target do not overwrite each other's gauges.
func TestGaugesOfResourceKeys(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c")
	r := newCountRecorder()
	dial := func(key string, nodes ...*leastconntest.Node) *channel {
		cfg := keyed(e.Name() + key)
		cfg.Target = e.Name()
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithStatsHandler(r))
		return e.dialAs(e.Name()+key, cfg, nodes...)
	}
	one, two := dial("/1", ns...), dial("/2", ns[:2]...)
	one.hold(3)
	held, _ := two.hold(5)
	for range 2 { // also while channels share what they are told
		require.Equal(t, map[string]int{"": 8}, r.exported()["in_flight"])
		require.Equal(t, map[string]int{e.Name() + "/1": 3, e.Name() + "/2": 5, "": 8}, r.exported(keyLabel)["in_flight"])
		require.Equal(t, map[string]int{e.Name() + "/1": 0, e.Name() + "/2": 1, "": 1}, r.exported(keyLabel)["imbalance"])
		byNode := map[string]int{"": 8}
		for _, n := range ns {
			byNode[n.Addr()] = n.Live()
		}
		require.Equal(t, byNode, r.exported(endpointLabel)["in_flight"])
	}
	// The second moves to the first's key. What it has in flight stays where it is.
	two.reconfigure(leastconnbalancer.Config{ResourceKey: e.Name() + "/1"}, ns[:2]...)
	two.key = e.Name() + "/1"
	two.hold(2)
	require.Equal(t, map[string]int{"": 10}, r.exported()["in_flight"])
	require.Equal(t, map[string]int{e.Name() + "/1": 5, e.Name() + "/2": 5, "": 10}, r.exported(keyLabel)["in_flight"])
	require.Equal(t, map[string]int{"ready": 3, "draining": 0, "not_ready": 0, "departed": 2}, r.exported(stateLabel)["endpoints"])
	require.NoError(t, leastconntest.EndAll(held))
	require.Equal(t, map[string]int{e.Name() + "/1": 5}, r.exported(keyLabel)["in_flight"])
	require.NoError(t, one.Close())
	e.wait("the first's streams have ended", func() bool { return r.exported()["in_flight"][""] == 2 })
	require.NoError(t, two.Close())
	require.Empty(t, r.exported())
	require.Empty(t, r.live)
}

// Channels of one target that list different endpoints report the same: those of both.
func TestGaugesOfChannelsWithDifferentLists(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c")
	cfg, r := recorded(leastconntest.ChannelConfig{Target: e.Name()})
	one, two := e.dialWith(cfg, ns[:2]...), e.dialWith(cfg, ns[1:]...)
	one.hold(4)
	two.hold(4)
	require.Equal(t, map[string]int{"": onServers(ns)}, r.exported()["in_flight"])
	require.Equal(t, map[string]int{"ready": 3, "draining": 0, "not_ready": 0, "departed": 0}, r.exported(stateLabel)["endpoints"])
	require.NoError(t, one.Close())
	e.wait("the first's streams have ended", func() bool { return onServers(ns) == 4 && r.exported()["in_flight"][""] == 4 })
}

// A target that has no balancer for a while, as when an xDS listener goes and comes back, shows with the next one what
// was in flight before, also under another resource key.
func TestGaugesOfATargetThatComesBack(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	cfg, r := recorded(leastconntest.ChannelConfig{Target: e.Name(), ServiceConfig: leastconnbalancer.Config{ResourceKey: e.Name() + "/1"}.ServiceConfig()})
	c := e.dialAs(e.Name()+"/1", cfg, ns...)
	held, _ := c.hold(4)
	require.NoError(t, c.UpdateConfig(roundRobin, leastconntest.Endpoints(ns...)...))
	e.wait("the policy has gone", func() bool { return len(r.exported()) == 0 })
	c.reconfigure(leastconnbalancer.Config{ResourceKey: e.Name() + "/2"}, ns...)
	e.wait("it is back", func() bool { return r.exported(stateLabel)["endpoints"]["ready"] == 2 })
	require.Equal(t, map[string]int{e.Name() + "/1": 4, e.Name() + "/2": 0, "": 4}, r.exported(keyLabel)["in_flight"])
	require.NoError(t, leastconntest.EndAll(held))
	e.wait("its streams have ended", func() bool { return r.exported()["in_flight"][""] == 0 })
	require.Equal(t, map[string]int{e.Name() + "/2": 0}, r.exported(keyLabel)["in_flight"])
}
