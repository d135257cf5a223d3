package integration

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/resolver"
)

// shop is a service that two channels of the process share, each with a target
// of its own. Failed calls are tried again.
const shop = `{
	"loadBalancingConfig": [{"least_conn": {"resourceKey": "shop", "failurePenalty": "60s"}}],
	"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s",
		"backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]
}`

// openShop opens the two channels and waits until both can use all nodes.
func openShop(t *testing.T, m *telemetry, nodes ...*leastconntest.Node) (one, two *env) {
	one = m.dial(leastconntest.ChannelConfig{Target: "one", ServiceConfig: shop}, nodes...)
	two = m.dial(leastconntest.ChannelConfig{Target: "two", ServiceConfig: shop}, nodes...)
	one.key, two.key = "shop", "shop"
	one.waitReadyOfTwo(all(nodes...)...)
	return one, two
}

// trouble brings the shop into a state in which each panel has something to
// show: b has departed with 2 RPCs, d with 2 drains, a with 4 and c with 3 are
// full, a call that c has failed went elsewhere, and an RPC waits.
func trouble(t *testing.T, one, two *env, ns []*leastconntest.Node) {
	a, c, d := ns[0], ns[2], ns[3]
	held, err := one.channel.OpenN(t.Context(), 5)
	require.NoError(t, err)
	others, err := two.channel.OpenN(t.Context(), 3)
	require.NoError(t, err)
	for _, s := range append(held, others...) {
		if s.Node() == c.Name() {
			require.NoError(t, s.End())
			break
		}
	}
	c.SetFail(codes.Unavailable)
	by, err := one.unary()
	require.NoError(t, err)
	require.NotEqual(t, c.Name(), by)
	c.SetFail(codes.OK)

	list := []grpcresolver.Endpoint{ // the penalty takes one of the places of c
		resolver.SetMaxInFlight(a.Endpoint(), 4), resolver.SetMaxInFlight(c.Endpoint(), 4), resolver.SetWeight(d.Endpoint(), 0),
	}
	require.NoError(t, one.channel.Update(list...))
	require.NoError(t, two.channel.Update(list...))
	_, err = one.channel.OpenN(t.Context(), 4)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() { _, _ = one.channel.Open(ctx) }) // which may find room when the test ends
	t.Cleanup(waiting.Wait)
	t.Cleanup(cancel)
	wait(t, "an RPC waits", func() bool { return one.snapshot().Waiting == 1 })
}

// The panels show what the servers handle and what has happened, by way of
// gRPC's plugin, OpenTelemetry's exporter and Prometheus, and count the load of
// channels that share it once.
func TestDashboardValues(t *testing.T) {
	begun := time.Now()
	m := newTelemetry(t, endpointLabel)
	ns := startNodes(t, "a", "b", "c", "d")
	one, two := openShop(t, m, ns...)
	instance := strings.TrimPrefix(m.page.URL, "http://")
	p := startPrometheus(t, instance)
	target, other := one.conn.CanonicalTarget(), two.conn.CanonicalTarget()
	p.until("Prometheus has seen 0, for the rates", func(now *assert.CollectT) {
		p.answers(now, map[string]float64{target: 0, other: 0}, "grpc_target", "sum by (grpc_target) (grpc_lb_least_conn_picks_total)")
	})
	trouble(t, one, two, ns)

	started, byEndpoint := 0, handled(ns...)
	for _, n := range ns {
		started += n.Started()
	}
	sum := byEndpoint[""]
	require.Equal(t, 11.0, sum)
	delete(byEndpoint, "")
	d := dashboard(t)
	d.offers(p, instance, "instance", instance)
	d.offers(p, instance, "target", target)
	d.offers(p, instance, "target", other)
	queries, ofAll := d.queries(t, pattern(instance), pattern(target)), d.queries(t, ".*", ".*")
	p.until("the panels show what is so", func(now *assert.CollectT) {
		p.answers(now, byEndpoint, "grpc_lb_least_conn_endpoint", queries["In flight by endpoint A"])
		p.answers(now, byEndpoint, "grpc_lb_least_conn_endpoint", ofAll["In flight by endpoint, all processes A"])
		p.answers(now, map[string]float64{"ready": 2, "draining": 1, "not_ready": 0, "departed": 1},
			"grpc_lb_least_conn_state", queries["Endpoints by state A"])
		for panel, value := range map[string]float64{
			"In flight A": sum, "Spread A": 0, "Spread over time A": 0, "Queue A": 1, "Double releases A": 0, "Ready endpoints A": 2,
		} {
			p.answers(now, map[string]float64{target: value}, "grpc_target", queries[panel])
		}
		for counter, value := range map[string]int{
			"picks": started - 3, "picks_queued": 1, "retries_to_other_endpoint": 1, "penalties": 1, "double_releases": 0,
		} {
			p.answers(now, map[string]float64{target: float64(value)}, "grpc_target",
				fmt.Sprintf("sum by (grpc_target) (grpc_lb_least_conn_%s_total{grpc_target=%q})", counter, target))
		}
		const byEndpoint = "grpc_lb_least_conn_endpoint"
		p.answers(now, map[string]float64{ns[0].Addr(): 1, ns[2].Addr(): 0.75}, byEndpoint, queries["Caps in use by endpoint A"])
		p.answers(now, map[string]float64{ns[0].Addr(): 1, ns[1].Addr(): 0, ns[2].Addr(): 1, ns[3].Addr(): 0}, byEndpoint, queries["Effective weight by endpoint A"])
		assert.Positive(now, p.by(now, byEndpoint, queries["Picks by endpoint A"])[ns[0].Addr()])
		penalties := p.by(now, byEndpoint, queries["Penalties by endpoint A"])
		assert.Positive(now, penalties[ns[2].Addr()])
		assert.Zero(now, penalties[ns[0].Addr()])
		for _, panel := range []string{"Picks A", "Picks per second A", "Queue B", "Penalties A", "Retries elsewhere A"} {
			assert.Positive(now, p.by(now, "grpc_target", queries[panel])[target], panel)
		}
		for _, panel := range []string{"Oldest in flight A", "Oldest in flight over time A"} {
			age := p.by(now, "grpc_target", queries[panel])[target]
			assert.Positive(now, age, panel)
			assert.Less(now, age, time.Since(begun).Seconds(), panel)
		}
	})
	d.runs(p, instance, target)
	doc, err := os.ReadFile("../docs/verify.md")
	require.NoError(t, err)
	examples := regexp.MustCompile(`(?m)^(max|sum) by .*$`).FindAllString(string(doc), -1)
	require.Len(t, examples, 2)
	for _, expr := range examples {
		require.NotEmpty(t, p.query(t, strings.ReplaceAll(expr, `instance="…"`, `instance="`+instance+`"`)), expr)
	}
}

// The panels show several processes at once: each, or what they have together.
func TestDashboardOfSeveralProcesses(t *testing.T) {
	ns := startNodes(t, "a", "b")
	file := newNodeFile(t)
	file.list(3, ns...)
	program := buildProgram(t, "metrics")
	var instances []string
	for range 3 {
		instances = append(instances, startClient(t, program, "-target", file.target(), "-every", "10ms").addr)
	}
	p := startPrometheus(t, instances...)
	chosen := instances[1:]
	queries := dashboard(t).queries(t, "("+pattern(chosen[0])+"|"+pattern(chosen[1])+")", pattern(file.target()))
	p.until("the panels show two of three processes", func(now *assert.CollectT) {
		p.answers(now, map[string]float64{file.target(): 2 * 6}, "grpc_target", queries["In flight A"])
		p.answers(now, map[string]float64{file.target(): 2}, "grpc_target", queries["Ready endpoints A"])
		p.answers(now, map[string]float64{ns[0].Addr(): 3 * 3, ns[1].Addr(): 3 * 3}, "grpc_lb_least_conn_endpoint", queries["In flight by endpoint, all processes A"])
		for _, panel := range []string{"Spread over time A", "Picks A", "Queue A", "Oldest in flight over time A"} {
			values := p.by(now, "instance", queries[panel])
			assert.ElementsMatch(now, chosen, slices.Collect(maps.Keys(values)), panel)
		}
		byEndpoint := map[string]bool{}
		for _, s := range p.query(now, queries["In flight by endpoint A"]) {
			byEndpoint[s.Metric["instance"]+" "+s.Metric["grpc_lb_least_conn_endpoint"]+" "+s.Value[1].(string)] = true
		}
		assert.Equal(now, map[string]bool{
			chosen[0] + " " + ns[0].Addr() + " 3": true, chosen[0] + " " + ns[1].Addr() + " 3": true,
			chosen[1] + " " + ns[0].Addr() + " 3": true, chosen[1] + " " + ns[1].Addr() + " 3": true,
		}, byEndpoint)
	})
}
