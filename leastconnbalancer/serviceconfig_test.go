package leastconnbalancer_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// A service config keeps all that does not select a policy, byte by byte where that is a
// number or a text.
func TestMergedServiceConfig(t *testing.T) {
	const (
		own   = `"loadBalancingConfig":[{"least_conn":{"maxInFlight":7}}]`
		retry = `"methodConfig":[{"name":[{}],"timeout":"1.5s","retryPolicy":{"maxAttempts":3,"initialBackoff":"0.1s","maxBackoff":"1s","backoffMultiplier":1.50,"retryableStatusCodes":["UNAVAILABLE"]}}]`
		rest  = `"retryThrottling":{"maxTokens":10,"tokenRatio":0.10},"healthCheckConfig":{"serviceName":""}`
		alien = `"zzz":{"big":12345678901234567890,"fine":0.10000000000000000001,"text":"<&> é"}`
	)
	for given, want := range map[string]string{
		``:                                      `{` + own + `}`,
		" \n":                                   `{` + own + `}`,
		`{}`:                                    `{` + own + `}`,
		` { }`:                                  `{` + own + `}`,
		`{"loadBalancingPolicy":"round_robin"}`: `{` + own + `}`,
		`{"loadBalancingConfig":[{"round_robin":{}}]}`:                                     `{` + own + `}`,
		`{"loadBalancingConfig":[{"a":{}},{"least_conn":{"maxQueued":5}},{"b":{}}]}`:       `{` + own + `}`,
		`{"loadBalancingConfig":"nonsense","loadBalancingPolicy":5}`:                       `{` + own + `}`,
		`{"LOADBALANCINGCONFIG":[{"least_conn":{"maxQueued":0}}],"loadbalancingpolicy":1}`: `{` + own + `}`,
		`{` + retry + `,` + rest + `,` + alien + `,"loadBalancingPolicy":"round_robin"}`:   `{"healthCheckConfig":{"serviceName":""},` + own + `,` + retry + `,"retryThrottling":{"maxTokens":10,"tokenRatio":0.10},` + alien + `}`,
	} {
		got, err := leastconnbalancer.Config{MaxInFlight: 7}.MergeInto(given)
		require.NoError(t, err, "%s", given)
		require.Equal(t, want, got, "%s", given)
		require.NoError(t, dialError(got), "%s", given)
		again, err := leastconnbalancer.Config{MaxInFlight: 7}.MergeInto(got)
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
	alone, err := highest.MergeInto("")
	require.NoError(t, err)
	require.Equal(t, highest.ServiceConfig(), alone)
}

func TestServiceConfigThatCannotBeMergedInto(t *testing.T) {
	for given, says := range map[string]string{
		`null`:                    `least_conn: service config "null": want a JSON object`,
		`[]`:                      `least_conn: service config "[]": want a JSON object: json: `,
		`"{}"`:                    `want a JSON object`,
		`5`:                       `least_conn: service config "5": want a JSON object`,
		`{`:                       `least_conn: service config "{": want a JSON object: unexpected end of JSON input`,
		`{"a":1,}`:                `want a JSON object: invalid character`,
		`{} {}`:                   `want a JSON object: invalid character`,
		strings.Repeat("x", 1000): `least_conn: service config "` + strings.Repeat("x", 100) + `": want`,
	} {
		got, err := leastconnbalancer.Config{}.MergeInto(given)
		require.ErrorContains(t, err, says)
		require.Less(t, len(err.Error()), 300)
		require.Empty(t, got)
	}
	_, err := leastconnbalancer.Config{MaxQueued: ptr[uint32](0)}.MergeInto(`{}`)
	require.EqualError(t, err, `least_conn: field maxQueued: value 0: want a whole number from 1 to 1000000`)
}

// Numbers that JSON lacks are wrong values as others are.
func TestNumbersThatJSONLacks(t *testing.T) {
	slow := func(percent, aggression *float64) leastconnbalancer.Config {
		return leastconnbalancer.Config{SlowStart: &leastconnbalancer.SlowStart{
			Window: leastconnbalancer.Duration(time.Second), MinWeightPercent: percent, Aggression: aggression}}
	}
	for says, c := range map[string]leastconnbalancer.Config{
		`slowStart.minWeightPercent: value NaN: want a number above 0, at most 100`:   slow(ptr(math.NaN()), nil),
		`slowStart.aggression: value +Inf: want a number from 0.01 to 100`:            slow(nil, ptr(math.Inf(1))),
		`rebalance.perSecond: value -Inf: want a number from 0, no moves, to 1000`:    {Rebalance: &leastconnbalancer.Rebalance{PerSecond: ptr(math.Inf(-1))}},
		`rebalance.perSecond: value 1000.5: want a number from 0, no moves, to 1000`:  {Rebalance: &leastconnbalancer.Rebalance{PerSecond: ptr(1000.5)}},
		`slowStart.minWeightPercent: value 100.5: want a number above 0, at most 100`: slow(ptr(100.5), ptr(1.0)),
	} {
		require.EqualError(t, c.Validate(), `least_conn: field `+says)
	}
}

// What Go leaves out is the default: a field is a pointer exactly where zero, written down,
// would be something else. Two fields have no default, and are required.
func TestZeroIsTheDefault(t *testing.T) {
	required := map[string]bool{"slowStart.window": true, "reports.interval": true}
	var check func(typ reflect.Type, within string, wrap func(js string) string)
	check = func(typ reflect.Type, within string, wrap func(js string) string) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || name == "-" {
				continue
			}
			pointer := f.Type.Kind() == reflect.Pointer
			if pointer && f.Type.Elem().Kind() == reflect.Struct {
				check(f.Type.Elem(), name+".", func(js string) string { return `{"` + name + `":{` + js + `}}` })
				continue
			}
			if required[within+name] {
				require.False(t, pointer, within+name)
				delete(required, within+name)
				continue
			}
			require.Equal(t, "omitempty", options, "%s%s: the zero value is left out", within, name)
			zero := `""`
			switch {
			case strings.HasSuffix(f.Type.String(), "Duration"):
				zero = `"0s"`
			case f.Type.Kind() != reflect.String:
				zero = `0`
			}
			bare, err := parse(wrap(strings.TrimPrefix(needed[within], ",")))
			require.NoError(t, err)
			c, err := parse(wrap(`"` + name + `":` + zero + needed[within]))
			asDefault := err == nil && reflect.DeepEqual(c, bare)
			if pointer {
				require.False(t, asDefault, "%s%s is a pointer, and need not be", within, name)
			} else {
				require.True(t, asDefault || f.Type.Kind() == reflect.String && err != nil, "%s%s: %s is %+v, %v", within, name, zero, c, err)
			}
		}
	}
	check(reflect.TypeFor[leastconnbalancer.Config](), "", func(js string) string { return `{` + js + `}` })
	require.Empty(t, required)
}

// needed is what an object cannot do without.
var needed = map[string]string{"slowStart.": `,"window":"1s"`, "reports.": `,"interval":"1s"`}
