package leastconnbalancer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/connectivity"
)

// waitsFor checks that RPCs wait for d from now, to the nanosecond, and then go
// to the endpoint.
func (c *fakeConn) waitsFor(d time.Duration, then string) {
	c.tb.Helper()
	require.Equal(c.tb, "wait", c.at())
	passes(d - 1)
	require.Equal(c.tb, "wait", c.at(), "1 ns before %v are over", d)
	_, s := c.published()
	require.Contains(c.tb, []connectivity.State{connecting, idle}, s)
	passes(1)
	require.Equal(c.tb, then, c.at(), "after %v", d)
}

var failovers = map[string]time.Duration{
	`{}`:                            10 * time.Second,
	`{"priorityFailover":null}`:     10 * time.Second,
	`{"priorityFailover":"1.5s"}`:   1500 * time.Millisecond,
	`{"priorityFailover":"250ms"}`:  250 * time.Millisecond,
	`{"priorityFailover":"0.001s"}`: time.Millisecond,
	`{"priorityFailover":"3600s"}`:  time.Hour,
}

func TestLevelIsWaitedForAtStart(t *testing.T) {
	for config, want := range failovers {
		inFakeTime(t, config, func(t *testing.T, c *fakeConn) {
			c.list(config, "a", "b")
			c.connect("b")
			c.waitsFor(want, "b")
			c.connect("a")
			require.Equal(t, "a", c.at())
		})
	}
}

func TestLevelThatReconnectsIsWaitedFor(t *testing.T) {
	for config, want := range failovers {
		inFakeTime(t, config, func(t *testing.T, c *fakeConn) {
			c.list(config, "a", "b")
			c.connect("ab")
			for range 3 {
				passes(max(2*want, time.Second))
				c.report("a", idle)
				passes(want / 2)
				c.report("a", connecting)
				require.Equal(t, "wait", c.at())
				c.report("a", ready)
				require.Equal(t, "a", c.at(), "the time begins anew")
			}
			passes(max(2*want, time.Second))
			c.report("a", idle)
			c.waitsFor(want, "b")
			passes(want)
			c.report("a", connecting)
			require.Equal(t, "b", c.at(), "its time is over")
			c.report("a", ready)
			require.Equal(t, "a", c.at())
			c.report("a", idle)
			c.waitsFor(want, "b")
		})
	}
}

func TestLevelThatFailedIsNotWaitedFor(t *testing.T) {
	inFakeTime(t, "at once", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ac", "b")
		c.connect("b")
		c.report("a", connecting, failure)
		require.Equal(t, "wait", c.at(), "c still connects")
		c.report("c", connecting, failure)
		require.Equal(t, "b", c.at())
		passes(time.Minute)
		c.report("a", idle, connecting)
		require.Equal(t, "b", c.at(), "it has failed and not been ready since")
		c.list(`{}`, "acd", "b")
		require.Equal(t, "b", c.at(), "nor do newcomers change that")
		c.report("a", ready)
		require.Equal(t, "a", c.at())
		c.report("a", idle)
		c.waitsFor(10*time.Second, "b")
	})
}

func TestZeroDoesNotWait(t *testing.T) {
	inFakeTime(t, "0s", func(t *testing.T, c *fakeConn) {
		c.list(`{"priorityFailover":"0s"}`, "a", "b")
		require.Equal(t, "wait", c.at(), "nothing is ready")
		c.connect("b")
		require.Equal(t, "b", c.at())
		c.connect("a")
		require.Equal(t, "a", c.at())
		c.report("a", idle)
		require.Equal(t, "b", c.at())
	})
}

// Each level has its own time; the last is all there is, and waited for as long
// as it takes.
func TestEveryLevelHasItsTime(t *testing.T) {
	inFakeTime(t, "three", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "a", "b", "c")
		c.connect("abc")
		c.report("a", idle)
		passes(6 * time.Second)
		require.Equal(t, "wait", c.at())
		c.report("b", idle)
		passes(4 * time.Second)
		require.Equal(t, "wait", c.at(), "now for b, for the rest of its time")
		c.waitsFor(6*time.Second, "c")
		c.report("c", idle)
		passes(time.Hour)
		require.Equal(t, "wait", c.at())
		_, s := c.published()
		require.Equal(t, connecting, s)
		c.report("c", connecting, ready)
		require.Equal(t, "c", c.at())
	})
	inFakeTime(t, "a failed one between", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "a", "b", "c")
		c.connect("c")
		c.report("b", connecting, failure)
		c.waitsFor(10*time.Second, "c")
	})
	inFakeTime(t, "all fail", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "a", "b", "c")
		for _, name := range []string{"a", "c", "b"} {
			require.Equal(t, "wait", c.at())
			c.report(name, connecting, failure)
		}
		require.Equal(t, "no connection to b", c.at())
		_, s := c.published()
		require.Equal(t, failure, s)
	})
}

// A new duration holds for the waiting that goes on, too.
func TestNewFailoverTime(t *testing.T) {
	for _, tc := range []struct {
		from, to    string
		after, more time.Duration
	}{
		{"3600s", "5s", time.Second, 4 * time.Second},
		{"3600s", "5s", time.Minute, 0},
		{"5s", "60s", time.Second, 59 * time.Second},
		{"60s", "0s", time.Second, 0},
	} {
		inFakeTime(t, fmt.Sprint(tc), func(t *testing.T, c *fakeConn) {
			c.list(`{"priorityFailover":"`+tc.from+`"}`, "a", "b")
			c.connect("b")
			passes(tc.after)
			require.Equal(t, "wait", c.at())
			c.list(`{"priorityFailover":"`+tc.to+`"}`, "a", "b")
			if tc.more > 0 {
				c.waitsFor(tc.more, "b")
			}
			passes(1)
			require.Equal(t, "b", c.at())
		})
	}
}

// A level that has gone, and a balancer that is closed, leave no timer that
// does anything.
func TestTimerGoesWithItsLevel(t *testing.T) {
	ends := map[string]func(*fakeConn){
		"ready":   func(c *fakeConn) { c.connect("a") },
		"failed":  func(c *fakeConn) { c.report("a", connecting, failure) },
		"removed": func(c *fakeConn) { c.list(`{}`, "", "b") },
		"moved":   func(c *fakeConn) { c.list(`{}`, "", "ab") },
		"closed":  func(c *fakeConn) { c.balancer.Close() },
	}
	for name, end := range ends {
		inFakeTime(t, name, func(t *testing.T, c *fakeConn) {
			c.list(`{}`, "a", "b")
			c.connect("b")
			passes(5 * time.Second)
			end(c)
			before, _ := c.published()
			passes(time.Hour)
			after, _ := c.published()
			require.Equal(t, before, after, "pickers")
		})
	}
}

// Nothing is waited for where nobody can take RPCs.
func TestLevelsComeAndGo(t *testing.T) {
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "", "b")
		c.connect("b")
		require.Equal(t, "b", c.at())
		c.list(`{}`, "a", "b")
		c.connect("a")
		require.Equal(t, "a", c.at())
		c.list(`{}`, "", "", "b")
		require.Equal(t, "b", c.at())
		c.list(`{}`, "", "", "b", "a")
		require.Equal(t, "b", c.at())
		c.connect("a")
		c.list(`{}`, "", "", "", "a")
		require.Equal(t, "a", c.at())
		c.list(`{}`, "c", "a")
		c.waitsFor(10*time.Second, "a")
		c.list(`{}`, "a", "c")
		require.Equal(t, "a", c.at())
	})
}

// A level is what its endpoints of now make it: one that a ready endpoint has
// joined is waited for again, one that is left with failed ones is not.
func TestEndpointsThatMoveChangeTheirLevels(t *testing.T) {
	inFakeTime(t, "ready one joins a failed level", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "a", "bc")
		c.report("a", connecting, failure)
		c.connect("bc")
		c.list(`{}`, "ab", "c")
		require.Equal(t, "b", c.at())
		c.report("b", idle)
		c.waitsFor(10*time.Second, "c")
	})
	inFakeTime(t, "connecting one joins a failed level", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "a", "bc")
		c.report("a", connecting, failure)
		c.connect("c")
		c.list(`{}`, "ab", "c")
		require.Equal(t, "c", c.at())
	})
	inFakeTime(t, "connecting one leaves failed ones behind", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ab", "c")
		c.connect("c")
		c.report("a", connecting, failure)
		require.Equal(t, "wait", c.at())
		c.list(`{}`, "a", "cb")
		require.Equal(t, "c", c.at())
		c.list(`{}`, "ad", "cb")
		require.Equal(t, "c", c.at(), "it has failed and not been ready since")
	})
	inFakeTime(t, "ready one leaves connecting ones behind", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ab", "c")
		c.connect("ac")
		require.Equal(t, "a", c.at())
		c.list(`{}`, "b", "ca")
		require.Equal(t, "wait", c.at())
		passes(10 * time.Second)
		require.Contains(t, []string{"a", "c"}, c.at())
	})
	inFakeTime(t, "all drain for a while", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "a", "b")
		c.connect("b")
		passes(5 * time.Second)
		c.list(`{}`, "A", "b")
		require.Equal(t, "b", c.at())
		before, _ := c.published()
		passes(time.Minute)
		after, _ := c.published()
		require.Equal(t, before, after, "pickers")
		c.list(`{}`, "a", "b")
		c.waitsFor(10*time.Second, "b")
		c.list(`{}`, "A", "b")
		c.list(`{}`, "a", "b")
		c.waitsFor(10*time.Second, "b")
	})
	inFakeTime(t, "level is made of others", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "a", "b")
		c.report("a", connecting, failure)
		c.connect("b")
		require.Equal(t, "b", c.at())
		c.list(`{}`, "c", "b")
		require.Equal(t, "b", c.at(), "it takes over from the one that has failed")
	})
}
