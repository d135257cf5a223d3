package leastconnbalancer_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
	"github.com/leastconn/grpc-leastconn/state"
)

func ignored(name, nearest string) string {
	return `configuration: unknown field "` + name + `" is ignored; the nearest known one is "` + nearest + `"`
}

const (
	noCapOnFull    = "configuration: onFull has no effect: no endpoint has a cap (maxInFlight)"
	noCapMaxQueued = "configuration: maxQueued has no effect: no endpoint has a cap (maxInFlight)"
	noCapFail      = `configuration: onFull "fail" fails no RPC: no endpoint has a cap (maxInFlight), and for servers' limits none fails`
)

var warned = map[string][]string{
	`{}`:   nil,
	`null`: nil,
	`{"maxInFlight":4,"onFull":"fail","maxQueued":9}`: nil,
	`{"maxInflight":4}`:                                       {ignored("maxInflight", "maxInFlight")},
	`{"slowStart":{"window":"1s","minWeight":20}}`:            {ignored("slowStart.minWeight", "slowStart.minWeightPercent")},
	`{"slowStart":{"window":"1s","MinWeightPercent":2}}`:      {ignored("slowStart.MinWeightPercent", "slowStart.minWeightPercent")},
	`{"window":"1s"}`:                                         {ignored("window", "slowStart.window")},
	`{"failOver":"1s","resource_key":"x"}`:                    {ignored("failOver", "priorityFailover"), ignored("resource_key", "resourceKey")},
	`{"onFull":"fail","maxQueued":9}`:                         {noCapFail},
	`{"onFull":"queue","maxQueued":9,"maxInFlight":0}`:        nil,
	`{"onFull":"fail","streamLimit":"ignore"}`:                {noCapOnFull},
	`{"onFull":"queue","maxQueued":9,"streamLimit":"ignore"}`: {noCapOnFull, noCapMaxQueued},
	`{"maxInflight":4,"maxQueued":9,"streamLimit":"ignore"}`:  {ignored("maxInflight", "maxInFlight"), noCapMaxQueued},
	"{\"a \\u0007\\\" b\":1}":                                 {ignored(`a \a\" b`, "rebalance.minAge")},
	`{"reports":{"interval":"1s","Intervals":"2s"}}`:          {ignored("reports.Intervals", "reports.interval")},
}

// What of a configuration has no effect is shown with the channel, also when
// parents have rendered the configuration and read it again.
func TestConfigurationWarnings(t *testing.T) {
	for config, want := range warned {
		for range 3 {
			inFakeTime(t, config, func(t *testing.T, c *fakeConn) {
				c.list(config, "a")
				require.Equal(t, want, shown(t))
				c.list(`{}`, "a")
				require.Empty(t, shown(t))
			})
			parsed, err := parser.ParseConfig(json.RawMessage(config))
			require.NoError(t, err)
			again, err := json.Marshal(parsed)
			require.NoError(t, err)
			config = string(again)
		}
	}
}

var parser = balancer.Get(leastconnbalancer.Name).(balancer.ConfigParser)

// shown returns the warnings of the only channel.
func shown(t *testing.T) []string {
	t.Helper()
	var all []state.EndpointSetSnapshot
	for _, s := range leastconnbalancer.Snapshots() {
		all = append(all, s.EndpointSets...)
	}
	require.Len(t, all, 1)
	return all[0].Warnings
}

// A cap that the resolver sets gives onFull its effect.
func TestCapOfAnEndpointIsACap(t *testing.T) {
	l := newEnv(t)
	ns := l.nodes("a", "b")
	cfg := leastconntest.ChannelConfig{ServiceConfig: leastconnbalancer.Config{OnFull: leastconnbalancer.OnFullFail}.ServiceConfig()}
	c := l.dialWith(cfg, ns...)
	warnings := func() []string { return c.snapshot().EndpointSets[0].Warnings }
	require.Equal(t, []string{noCapFail}, warnings())
	require.NoError(t, c.Update(ns[0].Endpoint(), lcresolver.SetMaxInFlight(ns[1].Endpoint(), 3)))
	require.Empty(t, warnings())
}

func init() { logScripts["warnings"] = logWarnings }

func logWarnings(l *env, phase func(string)) {
	ns := l.nodes("a", "b")
	misspelt := `{"loadBalancingConfig":[{"least_conn":{"maxInflight":4,"onFull":"fail"}}]}`
	phase("dial")
	c := l.dialWith(leastconntest.ChannelConfig{Target: "logs", ServiceConfig: misspelt}, ns...)
	phase("again")
	for range 10 {
		c.update(ns[1])
		require.NoError(l, c.UpdateConfig(misspelt, leastconntest.Endpoints(ns...)...))
	}
	phase("another")
	require.NoError(l, c.UpdateConfig(`{"loadBalancingConfig":[{"least_conn":{"maxInFligth":4}}]}`, leastconntest.Endpoints(ns...)...))
}

func TestConfigurationWarnsOnce(t *testing.T) {
	require.Equal(t, map[string][]string{
		"dial":    {"WARNING " + ignored("maxInflight", "maxInFlight"), "WARNING " + noCapFail},
		"again":   nil,
		"another": {"WARNING " + ignored("maxInFligth", "maxInFlight")},
	}, logged(t, "warnings", atInfo...))
}
