package leastconnbalancer_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

func ptr[T any](v T) *T { return &v }

// lowest and highest have every field at its bounds.
var (
	lowest = leastconnbalancer.Config{
		PriorityFailover: leastconnbalancer.NewDuration(0),
		StartupWait:      leastconnbalancer.NewDuration(0),
		FailurePenalty:   leastconnbalancer.NewDuration(0),
		MaxInFlight:      1,
		OnFull:           leastconnbalancer.OnFullFail,
		MaxQueued:        ptr[uint32](1),
		StreamLimit:      leastconnbalancer.StreamLimitIgnore,
		SlowStart: &leastconnbalancer.SlowStart{
			MinWeightPercent: ptr(math.SmallestNonzeroFloat64),
			Aggression:       ptr(0.01),
		},
		Reports: &leastconnbalancer.Reports{Interval: leastconnbalancer.Duration(100 * time.Millisecond)},
	}
	highest = leastconnbalancer.Config{
		PriorityFailover: leastconnbalancer.NewDuration(time.Hour),
		StartupWait:      leastconnbalancer.NewDuration(time.Minute),
		FailurePenalty:   leastconnbalancer.NewDuration(time.Minute),
		MaxInFlight:      1<<31 - 1,
		OnFull:           leastconnbalancer.OnFullQueue,
		MaxQueued:        ptr[uint32](1_000_000),
		StreamLimit:      leastconnbalancer.StreamLimitServer,
		SlowStart: &leastconnbalancer.SlowStart{
			Window:           leastconnbalancer.Duration(time.Hour),
			MinWeightPercent: ptr(100.0),
			Aggression:       ptr(100.0),
		},
		Reports: &leastconnbalancer.Reports{Interval: leastconnbalancer.Duration(time.Hour)},
	}
)

// inBounds checks what a config that was accepted may hold.
func inBounds(t *testing.T, c leastconnbalancer.Config) {
	t.Helper()
	within := func(d *leastconnbalancer.Duration, most time.Duration) bool {
		return d == nil || *d >= 0 && time.Duration(*d) <= most
	}
	require.LessOrEqual(t, len(c.ResourceKey), leastconnbalancer.MaxResourceKey)
	require.True(t, within(c.PriorityFailover, time.Hour), "%v", c.PriorityFailover)
	require.True(t, within(c.StartupWait, time.Minute), "%v", c.StartupWait)
	require.True(t, within(c.FailurePenalty, time.Minute), "%v", c.FailurePenalty)
	require.LessOrEqual(t, c.MaxInFlight, uint32(1<<31-1))
	require.Contains(t, []leastconnbalancer.OnFull{"", "queue", "fail"}, c.OnFull)
	require.True(t, c.MaxQueued == nil || *c.MaxQueued >= 1 && *c.MaxQueued <= 1_000_000, "%v", c.MaxQueued)
	require.Contains(t, []leastconnbalancer.StreamLimit{"", "server", "ignore"}, c.StreamLimit)
	require.True(t, c.Reports == nil || c.Reports.Interval >= 1e8 && within(&c.Reports.Interval, time.Hour), "%v", c.Reports)
	if s := c.SlowStart; s != nil {
		require.True(t, within(&s.Window, time.Hour), "%v", s.Window)
		require.True(t, s.MinWeightPercent == nil || *s.MinWeightPercent > 0 && *s.MinWeightPercent <= 100, "%v", s.MinWeightPercent)
		require.True(t, s.Aggression == nil || *s.Aggression >= 0.01 && *s.Aggression <= 100, "%v", s.Aggression)
	}
}

// wrongField is a field, values that it does not take, and what it takes.
type wrongField struct {
	name    string
	values  []string
	allowed string
}

// config is one in which the field has the value.
func (f wrongField) config(value string) string {
	if within, name, nested := strings.Cut(f.name, "."); nested {
		if name == "window" || name == "interval" {
			return `{"` + within + `":{"` + name + `":` + value + `}}`
		}
		return `{"` + within + `":{"window":"1s","` + name + `":` + value + `}}`
	}
	return `{"` + f.name + `":` + value + `}`
}

var wrongFields = []wrongField{
	{"resourceKey", []string{`5`, `{"a":1}`}, `a string`},
	{"priorityFailover", []string{`5`, `{"seconds":5}`, `"soon"`, `"5"`, `""`, `"-1s"`, `"3600.000000001s"`, `"99999999999999999h"`},
		`a duration from "0s" to "3600s", such as "1.5s"`},
	{"startupWait", []string{`0.5`, `500`, `false`, `[]`, `""`, `"500"`, `"never"`, `"-1ms"`, `"60.000000001s"`, `"1m1s"`},
		`a duration from "0s" to "60s", such as "1.5s"`},
	{"failurePenalty", []string{`1`, `true`, `{}`, `""`, `"1"`, `"soon"`, `"-1ns"`, `"60.000000001s"`, `"2m"`},
		`a duration from "0s" to "60s", such as "1.5s"`},
	{"maxInFlight", []string{`-1`, `0.5`, `"1"`, `true`, `[]`, `2147483648`, `4294967295`, `4294967296`, `1e100`},
		`a whole number from 0, no cap, to 2147483647`},
	{"onFull", []string{`1`, `{}`, `""`, `"Queue"`, `"FAIL"`, `"wait"`, `" fail"`}, `"queue" or "fail"`},
	{"maxQueued", []string{`0`, `-1`, `1.5`, `"1"`, `{}`, `1000001`, `4294967295`, `4294967297`}, `a whole number from 1 to 1000000`},
	{"streamLimit", []string{`100`, `true`, `[]`, `""`, `"Server"`, `"none"`, `"ignore "`}, `"server" or "ignore"`},
	{"slowStart", []string{`"30s"`, `30`, `true`, `[]`, `["window"]`}, `an object such as {"window": "30s"}`},
	{"slowStart.window", []string{`30`, `"30"`, `""`, `{}`, `"-1s"`, `"3600.000000001s"`, `"61m"`},
		`a duration from "0s" to "3600s", such as "1.5s"`},
	{"slowStart.minWeightPercent", []string{`0`, `-1`, `-0.0`, `"10"`, `true`, `100.00000001`, `1e308`, `1e309`},
		`a number above 0, at most 100`},
	{"slowStart.aggression", []string{`0`, `-1`, `"1"`, `{}`, `0.009999999`, `100.000001`, `1e999`}, `a number from 0.01 to 100`},
	{"reports", []string{`"10s"`, `10`, `true`, `[]`}, `an object such as {"interval": "10s"}`},
	{"reports.interval", []string{`10`, `"10"`, `""`, `{}`, `"0s"`, `"-1s"`, `"99.999999ms"`, `"3600.000000001s"`},
		`a duration from "100ms" to "3600s", such as "10s"`},
}

// dialError is what gRPC says of a service config.
func dialError(serviceConfig string) error {
	conn, err := grpc.NewClient("passthrough:///unused",
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(serviceConfig))
	if err == nil {
		err = conn.Close()
	}
	return err
}

// A value that a field does not take is refused by the text that tells all of
// it.
func TestWrongFieldIsRefused(t *testing.T) {
	for _, field := range wrongFields {
		for _, value := range field.values {
			says := `least_conn: field ` + field.name + `: value ` + value + `: want ` + field.allowed
			_, err := parse(field.config(value))
			require.EqualError(t, err, says)
			require.ErrorContains(t, dialError(selecting(field.config(value))), says)
		}
	}
	for js, says := range map[string]string{
		`{"resourceKey":"` + strings.Repeat("k", 1025) + `"}`: `least_conn: field resourceKey: value "` + strings.Repeat("k", 32) + `"… has 1025 bytes, want at most 1024`,
		`["a"]`: `least_conn: configuration ["a"]: want a JSON object`,
		`"a"`:   `least_conn: configuration "a": want a JSON object`,
	} {
		_, err := parse(js)
		require.ErrorContains(t, err, says)
	}
	for _, js := range []string{`{"slowStart":{}}`, `{"slowStart":{"window":null}}`, `{"slowStart":{"aggression":1}}`} {
		_, err := parse(js)
		require.EqualError(t, err, `least_conn: field slowStart.window: value missing: want a duration, such as "30s"`)
	}
	for _, js := range []string{`{"reports":{}}`, `{"reports":{"interval":null}}`, `{"reports":{"Interval":"1s"}}`} {
		_, err := parse(js)
		require.EqualError(t, err, `least_conn: field reports.interval: value missing: want a duration from "100ms" to "3600s", such as "10s"`)
	}
}

// A config that was made by a program is held to the same bounds.
func TestWrongConfigOfAProgramIsRefused(t *testing.T) {
	for says, c := range map[string]leastconnbalancer.Config{
		`field startupWait: value "61s"`:          {StartupWait: leastconnbalancer.NewDuration(61 * time.Second)},
		`field failurePenalty: value "-1s"`:       {FailurePenalty: leastconnbalancer.NewDuration(-time.Second)},
		`field maxInFlight: value 2147483648`:     {MaxInFlight: 1 << 31},
		`field onFull: value "drop"`:              {OnFull: "drop"},
		`field maxQueued: value 0`:                {MaxQueued: ptr[uint32](0)},
		`field streamLimit: value "client"`:       {StreamLimit: "client"},
		`field slowStart.window: value "3601s"`:   {SlowStart: &leastconnbalancer.SlowStart{Window: leastconnbalancer.Duration(3601 * time.Second)}},
		`field slowStart.minWeightPercent: value`: {SlowStart: &leastconnbalancer.SlowStart{MinWeightPercent: ptr(0.0)}},
		`field reports.interval: value "0s"`:      {Reports: &leastconnbalancer.Reports{}},
		`field slowStart.aggression: value 101`:   {SlowStart: &leastconnbalancer.SlowStart{Aggression: ptr(101.0)}},
	} {
		require.ErrorContains(t, dialError(c.ServiceConfig()), says)
		require.ErrorContains(t, c.Validate(), says)
		require.ErrorContains(t, dialError(c.ServiceConfig()), c.Validate().Error())
	}
	require.NoError(t, lowest.Validate())
	require.NoError(t, highest.Validate())
}

// What is not set is not written, so that parents hand on defaults as such.
func TestFieldsAreWrittenAsGiven(t *testing.T) {
	for want, c := range map[string]leastconnbalancer.Config{
		`{}`: {},
		`{"resourceKey":"k","priorityFailover":"1.242232122s"}`: {ResourceKey: "k", PriorityFailover: leastconnbalancer.NewDuration(1242232122)},
		`{"priorityFailover":"0.000000001s"}`:                   {PriorityFailover: leastconnbalancer.NewDuration(1)},
		`{"priorityFailover":"3600s"}`:                          {PriorityFailover: leastconnbalancer.NewDuration(time.Hour)},
		`{"startupWait":"0s"}`:                                  {StartupWait: leastconnbalancer.NewDuration(0)},
		`{"startupWait":"0.75s"}`:                               {StartupWait: leastconnbalancer.NewDuration(750 * time.Millisecond)},
		`{"failurePenalty":"0s"}`:                               {FailurePenalty: leastconnbalancer.NewDuration(0)},
		`{"failurePenalty":"0.25s"}`:                            {FailurePenalty: leastconnbalancer.NewDuration(250 * time.Millisecond)},
		`{"maxInFlight":7}`:                                     {MaxInFlight: 7},
		`{"onFull":"fail"}`:                                     {OnFull: leastconnbalancer.OnFullFail},
		`{"onFull":"queue"}`:                                    {OnFull: leastconnbalancer.OnFullQueue},
		`{"maxQueued":1}`:                                       {MaxQueued: ptr[uint32](1)},
		`{"streamLimit":"ignore"}`:                              {StreamLimit: leastconnbalancer.StreamLimitIgnore},
		`{"streamLimit":"server"}`:                              {StreamLimit: leastconnbalancer.StreamLimitServer},
		`{"reports":{"interval":"10s"}}`:                        {Reports: &leastconnbalancer.Reports{Interval: leastconnbalancer.Duration(10 * time.Second)}},
		`{"slowStart":{"window":"0s"}}`:                         {SlowStart: &leastconnbalancer.SlowStart{}},
		`{"slowStart":{"window":"30s","minWeightPercent":12.5,"aggression":0.5}}`: {SlowStart: &leastconnbalancer.SlowStart{
			Window: leastconnbalancer.Duration(30 * time.Second), MinWeightPercent: ptr(12.5), Aggression: ptr(0.5)}},
	} {
		got, err := json.Marshal(c)
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
		read, err := parse(want)
		require.NoError(t, err)
		require.Equal(t, c, read)
	}
}

// A number that JSON lacks is told, not dropped.
func TestConfigThatCannotBeRendered(t *testing.T) {
	nan := math.NaN()
	c := leastconnbalancer.Config{SlowStart: &leastconnbalancer.SlowStart{Window: leastconnbalancer.Duration(time.Second), Aggression: &nan}}
	err := dialError(c.ServiceConfig())
	require.ErrorContains(t, err, "least_conn: configuration")
	require.ErrorContains(t, err, "NaN")
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
		``:                             {},
		`null`:                         {},
		`{}`:                           {},
		` { } `:                        {},
		`{"priorityFailover":"250ms"}`: {PriorityFailover: leastconnbalancer.NewDuration(250 * time.Millisecond)},
		`{"priorityFailover":"1m30s"}`: {PriorityFailover: leastconnbalancer.NewDuration(90 * time.Second)},
		`{"priorityFailover":"0"}`:     {PriorityFailover: leastconnbalancer.NewDuration(0)},
		`{"resourceKey":null}`:         {},
		`{"resourceKey":""}`:           {},
		`{"resourceKey":"a"}`:          {ResourceKey: "a"},
		`{"startupWait":null,"failurePenalty":null,"maxInFlight":null,"onFull":null,"maxQueued":null,"streamLimit":null,"slowStart":null,"reports":null}`: {},
		`{"slowStart":{"window":"0s","minWeightPercent":null,"aggression":null}}`:                                                                         {SlowStart: &leastconnbalancer.SlowStart{}},
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
