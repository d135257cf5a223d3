package leastconnbalancer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
)

// flushPeriod is how often counters are recorded where no gauge is collected.
const flushPeriod = 10 * time.Second

// A pick costs nothing but its own count: it is recorded later.
func TestPicksRecordNothingThemselves(t *testing.T) {
	inMeteredTime(t, func(t *testing.T, c *meteredConn, j *journal) {
		c.list(`{}`, "ab")
		c.ready("ab")
		c.picks(1000)
		passes(flushPeriod - 1)
		require.Empty(t, j.seen())
		require.Zero(t, j.recorded)
	})
}

// Where no gauge is collected, counters are recorded on a timer, to the last
// one.
func TestCountersAreRecordedOnATimer(t *testing.T) {
	inMeteredTime(t, func(t *testing.T, c *meteredConn, j *journal) {
		passes(3 * flushPeriod / 2) // no list yet
		c.list(`{}`, "ab")
		c.ready("ab")
		c.picks(3)
		require.Empty(t, j.seen())
		passes(flushPeriod / 2)
		require.Equal(t, map[string]int{"picks": 3}, j.seen())
		c.picks(4)
		passes(flushPeriod - 1)
		require.Equal(t, map[string]int{"picks": 3}, j.seen())
		passes(1)
		require.Equal(t, map[string]int{"picks": 7}, j.seen())
		passes(10 * flushPeriod)
		require.Equal(t, map[string]int{"picks": 7}, j.seen())
	})
}

// Where gauges are collected, that is when counters are recorded.
func TestCountersAreRecordedAtCollection(t *testing.T) {
	inMeteredTime(t, func(t *testing.T, c *meteredConn, j *journal) {
		c.list(`{}`, "ab")
		c.ready("ab")
		c.picks(5)
		j.Collect()
		require.Equal(t, map[string]int{"picks": 5}, j.seen())
		c.picks(1)
		passes(flushPeriod)
		require.Equal(t, map[string]int{"picks": 5}, j.seen(), "collected since the timer was last due")
		j.Collect()
		j.Collect()
		require.Equal(t, map[string]int{"picks": 6}, j.seen())
		c.picks(1)
		passes(2 * flushPeriod)
		require.Equal(t, map[string]int{"picks": 7}, j.seen(), "collection has ended")
	})
}

// Counters are there before they count, at 0.
func TestCountersBeginAtZero(t *testing.T) {
	inMeteredTime(t, func(t *testing.T, c *meteredConn, j *journal) {
		c.list(`{}`, "ab")
		require.Len(t, countersOf(j.Collect()), 5)
		require.Equal(t, 5, j.recorded)
		require.Empty(t, j.seen())
	})
}

// What is left is recorded when the balancer closes, once, and then no more.
func TestCountersAreRecordedAtClose(t *testing.T) {
	inMeteredTime(t, func(t *testing.T, c *meteredConn, j *journal) {
		c.list(`{}`, "ab")
		c.ready("ab")
		c.picks(5)
		late := c.pick()
		c.balancer.Close()
		require.Equal(t, map[string]int{"picks": 6}, j.seen())
		require.Equal(t, 1, j.stopped)
		late(balancer.DoneInfo{})
		late(balancer.DoneInfo{})
		c.balancer.Close()
		require.Empty(t, gaugesOf(j.Collect()))
		passes(10 * flushPeriod)
		require.Equal(t, map[string]int{"picks": 6}, j.seen())
		require.Equal(t, 1, j.stopped)
	})
}

// A balancer that never had a list has nothing to record.
func TestNothingIsRecordedWithoutAList(t *testing.T) {
	inMeteredTime(t, func(t *testing.T, c *meteredConn, j *journal) {
		require.Empty(t, j.Collect())
		passes(3 * flushPeriod)
		require.Empty(t, j.Collect())
		c.balancer.Close()
		require.Zero(t, j.recorded)
	})
}

// Other configurations, other ledgers and lists that come and go lose no count.
func TestChangesLoseNoCount(t *testing.T) {
	inMeteredTime(t, func(t *testing.T, c *meteredConn, j *journal) {
		want := 0
		pick := func(n int) {
			c.picks(n)
			want += n
		}
		for i, config := range []string{
			`{}`, `{"resourceKey":"lost count"}`, `{"resourceKey":"lost count","maxInFlight":7}`, `{}`, `{"priorityFailover":"1s"}`,
		} {
			c.list(config, "ab")
			if i == 0 {
				c.ready("ab")
			}
			pick(3)
			c.list(config, "", "ab")
			pick(2)
			c.list(config, "b", "a")
			pick(2)
			require.ErrorIs(t, c.balancer.UpdateClientConnState(balancer.ClientConnState{}), balancer.ErrBadResolverState)
			c.list(config, "ab")
			c.ready("ab")
			pick(1)
			if i%2 == 1 {
				j.Collect()
				require.Equal(t, want, j.seen()["picks"])
			}
		}
		c.balancer.Close()
		synctest.Wait()
		require.Equal(t, map[string]int{"picks": want}, j.seen())
	})
}

// The age of the oldest attempt is in whole seconds, and its own: it does not
// grow with what came later, and ends with it.
func TestOldestInFlightAge(t *testing.T) {
	inMeteredTime(t, func(t *testing.T, c *meteredConn, j *journal) {
		m := &meters{j.Recorder}
		c.list(`{}`, "ab")
		c.ready("ab")
		passes(time.Hour)
		require.Equal(t, 0, m.value("oldest_in_flight_age"))
		first := c.pick()
		passes(999 * time.Millisecond)
		require.Equal(t, 0, m.value("oldest_in_flight_age"))
		passes(time.Millisecond)
		require.Equal(t, 1, m.value("oldest_in_flight_age"))
		passes(59 * time.Second)
		second := c.pick()
		require.Equal(t, 60, m.value("oldest_in_flight_age"))
		passes(time.Hour)
		require.Equal(t, 3660, m.value("oldest_in_flight_age"))
		first(balancer.DoneInfo{})
		require.Equal(t, 3600, m.value("oldest_in_flight_age"))
		second(balancer.DoneInfo{})
		require.Equal(t, 0, m.value("oldest_in_flight_age"))
	})
}
