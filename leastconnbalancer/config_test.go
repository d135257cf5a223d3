package leastconnbalancer_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// parse reads a config as gRPC does.
func parse(js string) (leastconnbalancer.Config, error) {
	c, err := balancer.Get(leastconnbalancer.Name).(balancer.ConfigParser).ParseConfig(json.RawMessage(js))
	if err != nil {
		return leastconnbalancer.Config{}, err
	}
	return *c.(*leastconnbalancer.Config), nil
}

// selecting is the service config with the policy's config.
func selecting(js string) string {
	return `{"loadBalancingConfig":[{"least_conn":` + js + `}]}`
}

func TestServiceConfigSelectsThePolicy(t *testing.T) {
	for name, sc := range map[string]string{
		"loadBalancingConfig":       selecting(`{}`),
		"loadBalancingConfig, null": selecting(`null`),
		"loadBalancingPolicy":       `{"loadBalancingPolicy":"least_conn"}`,
		"after an unknown policy":   `{"loadBalancingConfig":[{"no_such_policy":{}},{"least_conn":{}},{"round_robin":{}}]}`,
		"both fields":               `{"loadBalancingPolicy":"round_robin","loadBalancingConfig":[{"least_conn":{}}]}`,
		"unknown fields":            selecting(`{"fromTheFuture":{"a":[1]}}`),
		"rendered":                  leastconnbalancer.Config{}.ServiceConfig(),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b")
			c := l.dialWith(leastconntest.ChannelConfig{ServiceConfig: sc}, ns...)
			c.load(ns, 0, 3)
			_, by := c.hold(3)
			require.Equal(t, map[string]int{"a": 3}, by)
		})
	}
}

func TestServiceConfigFromTheResolver(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.unused(leastconntest.ChannelConfig{ServiceConfig: `{"loadBalancingConfig":[{"round_robin":{}}]}`})
	c.key = l.Name()
	sc := leastconnbalancer.Config{ResourceKey: c.key}.ServiceConfig()
	require.NoError(t, c.UpdateConfig(sc, leastconntest.Endpoints(ns...)...))
	c.waitReady(ns...)
	c.load(ns, 0, 3)
	c.counts(ns, 0, 3)
}

// wrongConfigs are configs with what their refusal says.
var wrongConfigs = map[string]struct{ js, says string }{
	"number":      {`{"resourceKey":5}`, `least_conn: field resourceKey: value 5: want a string`},
	"object":      {`{"resourceKey":{"a":1}}`, `least_conn: field resourceKey: value {"a":1}: want a string`},
	"too long":    {`{"resourceKey":"` + strings.Repeat("k", 1025) + `"}`, `field resourceKey: value "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"… has 1025 bytes, want at most 1024`},
	"not objects": {`["a"]`, `least_conn: configuration ["a"]: want a JSON object`},
	"bare text":   {`"a"`, `least_conn: configuration "a": want a JSON object`},
	"penalty":     {`{"failurePenalty":"61s"}`, `field failurePenalty: value "61s": want a duration from "0s" to "60s"`},
	"cap":         {`{"maxInFlight":-1}`, `field maxInFlight: value -1: want a whole number from 0, no cap, to 2147483647`},
	"on full":     {`{"onFull":"drop"}`, `field onFull: value "drop": want "queue" or "fail"`},
	"queue":       {`{"maxQueued":0}`, `field maxQueued: value 0: want a whole number from 1 to 1000000`},
	"slow start":  {`{"slowStart":{}}`, `field slowStart.window: value missing: want a duration, such as "30s"`},
}

func TestWrongDefaultConfigIsRefused(t *testing.T) {
	for name, wrong := range wrongConfigs {
		t.Run(name, func(t *testing.T) {
			_, err := grpc.NewClient("passthrough:///unused",
				grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithDefaultServiceConfig(selecting(wrong.js)))
			require.ErrorContains(t, err, wrong.says)
		})
	}
}

func TestWrongConfigFromTheResolverIsRefused(t *testing.T) {
	for name, wrong := range wrongConfigs {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b", "c")
			c := l.unused(leastconntest.ChannelConfig{})
			c.key = l.Name()
			require.NoError(t, c.UpdateConfig(keyed(c.key).ServiceConfig, leastconntest.Endpoints(ns[:2]...)...))
			c.waitReady(ns[:2]...)
			c.hold(4)

			wrongErr := c.UpdateConfig(selecting(wrong.js))
			require.ErrorContains(t, wrongErr, wrong.says)
			err := c.UpdateState(resolver.State{
				Endpoints:     leastconntest.Endpoints(ns...),
				ServiceConfig: &serviceconfig.ParseResult{Err: wrongErr},
			})
			require.ErrorIs(t, err, balancer.ErrBadResolverState)
			c.waitReady(ns[2])
			_, by := c.hold(2)
			require.Equal(t, map[string]int{"c": 2}, by)
			c.counts(ns, 2, 2, 2)
		})
	}
}

func TestWrongConfigFromTheResolverAtFirst(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a")
	c := l.unused(leastconntest.ChannelConfig{})
	wrong := wrongConfigs["number"]
	err := c.UpdateState(resolver.State{
		Endpoints:     leastconntest.Endpoints(ns...),
		ServiceConfig: &serviceconfig.ParseResult{Err: c.UpdateConfig(selecting(wrong.js))},
	})
	require.ErrorIs(t, err, balancer.ErrBadResolverState)
	require.ErrorContains(t, c.unavailable(), wrong.says)

	require.NoError(t, c.UpdateConfig(selecting(`{}`), leastconntest.Endpoints(ns...)...))
	c.waitReady(ns...)
	require.Equal(t, "a", c.unary())
}

func TestConfigRoundTrips(t *testing.T) {
	for name, want := range map[string]leastconnbalancer.Config{
		"defaults": {},
		"key":      {ResourceKey: "dns:///a"},
		"any text": {ResourceKey: "\x00\"<é>\\ "},
		"longest":  {ResourceKey: strings.Repeat("k", leastconnbalancer.MaxResourceKey)},
		"lowest":   lowest,
		"highest":  highest,
	} {
		t.Run(name, func(t *testing.T) {
			js, err := json.Marshal(want)
			require.NoError(t, err)
			var got leastconnbalancer.Config
			require.NoError(t, json.Unmarshal(js, &got))
			require.Equal(t, want, got)
			got, err = parse(string(js))
			require.NoError(t, err)
			require.Equal(t, want, got)

			var sc struct {
				LoadBalancingConfig []map[string]json.RawMessage `json:"loadBalancingConfig"`
			}
			require.NoError(t, json.Unmarshal([]byte(want.ServiceConfig()), &sc))
			require.Len(t, sc.LoadBalancingConfig, 1)
			got, err = parse(string(sc.LoadBalancingConfig[0][leastconnbalancer.Name]))
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestParseConfigAccepts(t *testing.T) {
	for js, want := range map[string]leastconnbalancer.Config{
		``:                     {},
		`null`:                 {},
		`{}`:                   {},
		` { } `:                {},
		`{"resourceKey":null}`: {},
		`{"resourceKey":""}`:   {},
		`{"resourceKey":"a"}`:  {ResourceKey: "a"},
		`{"failurePenalty":null,"maxInFlight":null,"onFull":null,"maxQueued":null,"slowStart":null}`: {},
		`{"slowStart":{"window":"0s","minWeightPercent":null,"aggression":null}}`:                    {SlowStart: &leastconnbalancer.SlowStart{}},
	} {
		got, err := parse(js)
		require.NoError(t, err, "%q", js)
		require.Equal(t, want, got, "%q", js)
	}
	// Fields that are not known are accepted, and change nothing that is.
	got, err := parse(`{"resourceKey":"a","unknown":[],"slowStart":{"window":"1s","unknown":1}}`)
	require.NoError(t, err)
	require.Equal(t, "a", got.ResourceKey)
	require.Equal(t, &leastconnbalancer.SlowStart{Window: leastconnbalancer.Duration(1e9)}, got.SlowStart)
}

func FuzzParseConfig(f *testing.F) {
	for _, js := range []string{``, `null`, `{}`, `{"resourceKey":"a"}`, `{"resourceKey":null,"x":1}`, "{\"resourceKey\":\"\xff\"}"} {
		f.Add(js)
	}
	for _, wrong := range wrongConfigs {
		f.Add(wrong.js)
	}
	for _, field := range wrongFields {
		for _, value := range field.values {
			f.Add(field.config(value))
		}
	}
	for _, c := range []leastconnbalancer.Config{lowest, highest} {
		js, err := json.Marshal(c)
		require.NoError(f, err)
		f.Add(string(js))
	}
	f.Fuzz(func(t *testing.T, js string) {
		c, err := parse(js)
		if err != nil {
			require.ErrorContains(t, err, leastconnbalancer.Name)
			return
		}
		inBounds(t, c)
		again, err := json.Marshal(c)
		require.NoError(t, err)
		read, err := parse(string(again))
		require.NoError(t, err, "%s", again)
		require.Equal(t, c, read)
	})
}
