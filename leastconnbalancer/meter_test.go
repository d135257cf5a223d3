package leastconnbalancer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	estats "google.golang.org/grpc/experimental/stats"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// flushPeriod is how often counters are recorded where no gauge is collected.
const flushPeriod = 10 * time.Second

// inRecordedTime runs a test on a fake channel that records, in time of its own.
func inRecordedTime(t *testing.T, test func(*testing.T, *fakeConn, *countRecorder)) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newCountRecorder(), newFakeConn(t)
		c.recorder = r
		c.build(balancer.Get(leastconnbalancer.Name))
		t.Cleanup(c.balancer.Close)
		test(t, c, r)
	})
}

// A pick costs nothing but its own count: it is recorded later.
func TestPicksRecordNothingThemselves(t *testing.T) {
	inRecordedTime(t, func(t *testing.T, c *fakeConn, r *countRecorder) {
		c.list(`{}`, "ab")
		c.connect("ab")
		c.picks(1000, nil)
		passes(flushPeriod - 1)
		require.Empty(t, r.seen())
		require.Zero(t, r.recorded)
	})
}

// Where no gauge is collected, counters are recorded on a timer, to the last
// one.
func TestCountersAreRecordedOnATimer(t *testing.T) {
	inRecordedTime(t, func(t *testing.T, c *fakeConn, r *countRecorder) {
		passes(3 * flushPeriod / 2) // no list yet
		c.list(`{}`, "ab")
		c.connect("ab")
		c.picks(3, nil)
		require.Empty(t, r.seen())
		passes(flushPeriod / 2)
		require.Equal(t, map[string]int{"picks": 3}, r.seen())
		c.picks(4, nil)
		passes(flushPeriod - 1)
		require.Equal(t, map[string]int{"picks": 3}, r.seen())
		passes(1)
		require.Equal(t, map[string]int{"picks": 7}, r.seen())
		passes(10 * flushPeriod)
		require.Equal(t, map[string]int{"picks": 7}, r.seen())
	})
}

// Where gauges are collected, that is when counters are recorded.
func TestCountersAreRecordedAtCollection(t *testing.T) {
	inRecordedTime(t, func(t *testing.T, c *fakeConn, r *countRecorder) {
		c.list(`{}`, "ab")
		c.connect("ab")
		c.picks(5, nil)
		r.Collect()
		require.Equal(t, map[string]int{"picks": 5}, r.seen())
		c.picks(1, nil)
		passes(flushPeriod)
		require.Equal(t, map[string]int{"picks": 5}, r.seen(), "collected since the timer was last due")
		r.Collect()
		r.Collect()
		require.Equal(t, map[string]int{"picks": 6}, r.seen())
		c.picks(1, nil)
		passes(2 * flushPeriod)
		require.Equal(t, map[string]int{"picks": 7}, r.seen(), "collection has ended")
	})
}

// Counters are there before they count, at 0.
func TestCountersBeginAtZero(t *testing.T) {
	inRecordedTime(t, func(t *testing.T, c *fakeConn, r *countRecorder) {
		c.list(`{}`, "ab")
		const moves, endpoints = 3 * 6, 2 * 2 // by reason; picks and penalties of a and b
		series := 5 + moves + endpoints
		require.Len(t, r.ofType(estats.MetricTypeIntCount), series)
		require.Equal(t, series, r.recorded)
		require.Empty(t, r.seen())
	})
}

// What is left is recorded when the balancer closes, once, and then no more.
func TestCountersAreRecordedAtClose(t *testing.T) {
	inRecordedTime(t, func(t *testing.T, c *fakeConn, r *countRecorder) {
		c.list(`{}`, "ab")
		c.connect("ab")
		c.picks(5, nil)
		_, late := c.pick()
		c.balancer.Close()
		require.Equal(t, map[string]int{"picks": 6}, r.seen())
		require.Equal(t, 1, r.stopped)
		late(balancer.DoneInfo{})
		late(balancer.DoneInfo{})
		c.balancer.Close()
		require.Empty(t, r.gauges())
		passes(10 * flushPeriod)
		require.Equal(t, map[string]int{"picks": 6}, r.seen())
		require.Equal(t, 1, r.stopped)
	})
}

// A balancer that never had a list has nothing to record.
func TestNothingIsRecordedWithoutAList(t *testing.T) {
	inRecordedTime(t, func(t *testing.T, c *fakeConn, r *countRecorder) {
		require.Empty(t, r.Collect())
		passes(3 * flushPeriod)
		require.Empty(t, r.Collect())
		c.balancer.Close()
		require.Zero(t, r.recorded)
	})
}

// Other configurations, other ledgers and lists that come and go lose no count.
func TestChangesLoseNoCount(t *testing.T) {
	inRecordedTime(t, func(t *testing.T, c *fakeConn, r *countRecorder) {
		want := 0
		pick := func(n int) {
			c.picks(n, nil)
			want += n
		}
		for i, config := range []string{
			`{}`, `{"resourceKey":"lost count"}`, `{"resourceKey":"lost count","maxInFlight":7}`, `{}`, `{"priorityFailover":"1s"}`,
		} {
			c.list(config, "ab")
			if i == 0 {
				c.connect("ab")
			}
			pick(3)
			c.list(config, "", "ab")
			pick(2)
			c.list(config, "b", "a")
			pick(2)
			require.ErrorIs(t, c.balancer.UpdateClientConnState(balancer.ClientConnState{}), balancer.ErrBadResolverState)
			c.list(config, "ab")
			c.connect("ab")
			pick(1)
			if i%2 == 1 {
				r.Collect()
				require.Equal(t, want, r.seen()["picks"])
			}
		}
		c.balancer.Close()
		synctest.Wait()
		require.Equal(t, map[string]int{"picks": want}, r.seen())
	})
}

// The age of the oldest attempt is in whole seconds, and its own: it does not
// grow with what came later, and ends with it.
func TestOldestInFlightAge(t *testing.T) {
	inRecordedTime(t, func(t *testing.T, c *fakeConn, r *countRecorder) {
		c.list(`{}`, "ab")
		c.connect("ab")
		passes(time.Hour)
		require.Equal(t, 0, r.value("oldest_in_flight_age"))
		_, first := c.pick()
		passes(999 * time.Millisecond)
		require.Equal(t, 0, r.value("oldest_in_flight_age"))
		passes(time.Millisecond)
		require.Equal(t, 1, r.value("oldest_in_flight_age"))
		passes(59 * time.Second)
		_, second := c.pick()
		require.Equal(t, 60, r.value("oldest_in_flight_age"))
		passes(time.Hour)
		require.Equal(t, 3660, r.value("oldest_in_flight_age"))
		first(balancer.DoneInfo{})
		require.Equal(t, 3600, r.value("oldest_in_flight_age"))
		second(balancer.DoneInfo{})
		require.Equal(t, 0, r.value("oldest_in_flight_age"))
	})
}
