package leastconnbalancer_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// member returns the only endpoint as its only channel has it.
func member(t *testing.T) state.MemberSnapshot {
	t.Helper()
	for _, s := range leastconnbalancer.Snapshots() {
		if len(s.EndpointSets) > 0 {
			require.Len(t, s.Endpoints, 1)
			return s.Endpoints[0].Members[0]
		}
	}
	require.Fail(t, "no channel")
	return state.MemberSnapshot{}
}

// Snapshots say in which state a connection is, since when, and why it failed last, which
// stays when that is over.
func TestSnapshotsSayWhyAConnectionFails(t *testing.T) {
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		is := func(want string, since time.Duration, lastError string, ago time.Duration) {
			t.Helper()
			got := member(t).Connectivity
			require.Equal(t, []any{want, since.Seconds(), lastError, ago.Seconds()}, []any{got.State, got.SinceSeconds, got.LastError, got.LastErrorSeconds})
		}
		const refused = "no connection to a"
		c.list("", "a")
		passes(time.Second)
		is("CONNECTING", time.Second, "", 0)
		c.report("a", connecting, failure)
		passes(2 * time.Second)
		is("TRANSIENT_FAILURE", 2*time.Second, refused, 2*time.Second)
		require.Zero(t, member(t).Connection.Number)
		c.report("a", idle, connecting)
		passes(time.Second)
		is("TRANSIENT_FAILURE", 3*time.Second, refused, 3*time.Second)
		c.report("a", failure, idle, connecting)
		is("TRANSIENT_FAILURE", 3*time.Second, refused, 0)
		c.report("a", ready)
		passes(4 * time.Second)
		is("READY", 4*time.Second, refused, 4*time.Second)
		require.Equal(t, []any{uint64(1), 4.0}, []any{member(t).Connection.Number, member(t).Connection.AgeSeconds})

		unhealthy := balancer.SubConnState{ConnectivityState: failure, ConnectionError: errors.New("status=NOT_SERVING")}
		c.open("a")[0].health(unhealthy)
		passes(time.Second)
		is("TRANSIENT_FAILURE", time.Second, "health check: status=NOT_SERVING", time.Second)
		require.Equal(t, 5.0, member(t).Connection.AgeSeconds, "the connection is up")
		c.open("a")[0].health(balancer.SubConnState{ConnectivityState: ready})
		c.open("a")[0].health(balancer.SubConnState{ConnectivityState: failure})
		passes(time.Second)
		is("TRANSIENT_FAILURE", time.Second, "not healthy, and no health check says so: ejected, as by outlier detection", time.Second)

		c.list(`{"resourceKey":"another"}`, "a")
		is("TRANSIENT_FAILURE", time.Second, "not healthy, and no health check says so: ejected, as by outlier detection", time.Second)
		require.Equal(t, []any{uint64(1), 6.0}, []any{member(t).Connection.Number, member(t).Connection.AgeSeconds})
		c.report("a", idle, connecting, ready)
		require.EqualValues(t, 2, member(t).Connection.Number)
		c.lives("a", time.Millisecond)
		c.lives("a", time.Millisecond)
		require.Contains(t, member(t).Connectivity.LastError, "connections in a row ended within 1s")
		require.Zero(t, member(t).Connection.AgeSeconds)
	})
}

// The last error of a real connection is gRPC's, as it is.
func TestSnapshotsHaveTheErrorOfGRPC(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	c := e.dial(ns...)
	ns[0].Stop()
	e.wait("a has failed", func() bool { return c.of(ns[0].Addr()).Members[0].Connectivity.State == "TRANSIENT_FAILURE" })
	require.Regexp(t, `connection error: desc = "transport: Error while dialing: dial tcp `+ns[0].Addr()+`: connect: connection refused"`,
		c.of(ns[0].Addr()).Members[0].Connectivity.LastError)
	require.Zero(t, c.of(ns[0].Addr()).Members[0].Connection.AgeSeconds)
	require.Positive(t, c.of(ns[1].Addr()).Members[0].Connection.AgeSeconds)
	require.Empty(t, c.of(ns[1].Addr()).Members[0].Connectivity.LastError)
}

// So is that of its health check.
func TestSnapshotsHaveTheErrorOfHealthChecks(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	ns[0].SetServing(false)
	cfg := quickly()
	cfg.ServiceConfig = strings.Replace(withoutPenalty, "}]", `}],"healthCheckConfig":{"serviceName":""}`, 1)
	cfg.Endpoints = leastconntest.Endpoints(ns...)
	c := e.dialWith(cfg, ns[1])
	e.wait("a is not healthy", func() bool { return c.of(ns[0].Addr()).Members[0].Connectivity.State == "TRANSIENT_FAILURE" })
	m := c.of(ns[0].Addr()).Members[0]
	require.Equal(t, "health check: connection active but health check failed. status=NOT_SERVING", m.Connectivity.LastError)
	require.Positive(t, m.Connection.AgeSeconds)
}

// The configuration in use is shown with its defaults, with what is off, and with the
// fields that are not known.
func TestConfigurationInUseIsShown(t *testing.T) {
	const defaults = `{"resourceKey":"fake:/KEY","priorityFailover":"10s","startupWait":"0.5s","failurePenalty":"1s","onFull":"queue","maxQueued":1000,` +
		`"streamLimit":"server","rebalance":{"perSecond":10,"minAge":"30s","drainWithin":"10s"},"maxInFlight":0,"slowStart":null,"reports":null}`
	const all = `{"resourceKey":"k","priorityFailover":"1s","startupWait":"2s","failurePenalty":"3s","onFull":"fail","maxQueued":7,` +
		`"streamLimit":"ignore","rebalance":{"perSecond":1,"minAge":"4s","drainWithin":"5s"},"maxInFlight":8,` +
		`"slowStart":{"window":"6s","minWeightPercent":20,"aggression":2},"reports":{"interval":"9s"}}`
	for config, want := range map[string]string{
		"":                              defaults,
		`{}`:                            defaults,
		all:                             all,
		`{"slowStart":{"window":"6s"}}`: strings.Replace(defaults, `"slowStart":null`, `"slowStart":{"window":"6s","minWeightPercent":10,"aggression":1}`, 1),
		`{"maxInflight":4}`:             strings.Replace(defaults, `"reports":null`, `"reports":null,"ignoredFields":["maxInflight"]`, 1),
	} {
		inFakeTime(t, strconv.Itoa(len(config)), func(t *testing.T, c *fakeConn) {
			c.list(config, "a")
			var got json.RawMessage
			for _, s := range leastconnbalancer.Snapshots() {
				for _, r := range s.EndpointSets {
					got = r.Config
				}
			}
			require.Equal(t, strings.Replace(want, "fake:/KEY", c.target.String(), 1), string(got))
		})
	}
}
