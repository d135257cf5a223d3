package leastconnbalancer_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

var wrongFailovers = map[string]string{
	"number":    `5`,
	"object":    `{"seconds":5}`,
	"text":      `"soon"`,
	"no unit":   `"5"`,
	"empty":     `""`,
	"negative":  `"-1s"`,
	"too long":  `"3600.000000001s"`,
	"overflows": `"99999999999999999h"`,
}

func TestWrongFailoverTimeIsRefused(t *testing.T) {
	for name, value := range wrongFailovers {
		_, err := parse(`{"priorityFailover":` + value + `}`)
		require.EqualError(t, err, `least_conn: field priorityFailover: value `+value+
			`: want a duration from "0s" to "3600s", such as "1.5s"`, name)
	}
}

func TestFailoverTimeRoundTrips(t *testing.T) {
	values := map[string]time.Duration{
		`"0s"`: 0, `"1.5s"`: 1500 * time.Millisecond, `"0.25s"`: 250 * time.Millisecond, `"10s"`: 10 * time.Second,
		`"3600s"`: time.Hour, `"0.000000001s"`: 1, `"3599.999999999s"`: time.Hour - 1,
		`"1.242232122s"`: 1242232122, `"0.1s"`: 100 * time.Millisecond,
	}
	for js, d := range values {
		c := leastconnbalancer.Config{ResourceKey: "k", PriorityFailover: leastconnbalancer.NewDuration(d)}
		got, err := json.Marshal(c)
		require.NoError(t, err)
		require.JSONEq(t, `{"resourceKey":"k","priorityFailover":`+js+`}`, string(got))
		read, err := parse(string(got))
		require.NoError(t, err)
		require.Equal(t, c, read)
	}
	for js, d := range map[string]time.Duration{`"250ms"`: 250 * time.Millisecond, `"1h"`: time.Hour, `"1m30s"`: 90 * time.Second, `"0"`: 0} {
		read, err := parse(`{"priorityFailover":` + js + `}`)
		require.NoError(t, err, js)
		require.Equal(t, leastconnbalancer.NewDuration(d), read.PriorityFailover, js)
	}
	for range 1000 {
		c := leastconnbalancer.Config{PriorityFailover: leastconnbalancer.NewDuration(time.Duration(rand.Int64N(int64(time.Hour + 1))))}
		js, err := json.Marshal(c)
		require.NoError(t, err)
		read, err := parse(string(js))
		require.NoError(t, err, "%s", js)
		require.Equal(t, c, read, "%s", js)
	}
}
