package leastconnbalancer_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var (
	errAtOnce   = status.Error(codes.Unavailable, "at once")
	errDeadline = status.Error(codes.DeadlineExceeded, "too late")
	slow        = always(20*time.Millisecond, nil)
)

// A node that fails at once does not attract the RPCs, those that work take as
// many as without it, and it is found again when it is mended.
func TestFailingNodeIsNoSinkhole(t *testing.T) {
	for name, config := range map[string]string{"default config": `{}`, "without a config": ``} {
		inFakeTime(t, name, func(t *testing.T, c *fakeConn) {
			c.list(config, "abc")
			c.connect("abc")
			calls := c.closedLoop(12, 6*time.Second, map[string]behaviour{"b": slow, "c": slow, "a": func(since time.Duration) (time.Duration, error) {
				if since < 3*time.Second {
					return 0, errAtOnce
				}
				return 20 * time.Millisecond, nil
			}})
			served := 0
			for _, c := range calls {
				if c.begun < 2*time.Second && !c.failed {
					served++
				}
			}
			require.GreaterOrEqual(t, served, 1188, "of 1200 that b and c can serve in 2 s")
			require.InDelta(t, 18, calls.failures(), 3, "failed calls, in 3 s")
			by := calls.from(5 * time.Second).served()
			require.InDelta(t, by["b"], by["a"], 5, "a takes its part again: %v", by)
		})
	}
}

// With healthy nodes at their caps one that fails at once gets its cap in a second,
// whether RPCs wait for room or are turned away. Where all fail, they do so as fast as
// they answer.
func TestFailingNodeIsNoSinkholeBelowCaps(t *testing.T) {
	healthy, atOnce := always(50*time.Millisecond, nil), always(2*time.Millisecond, errAtOnce)
	for _, onFull := range []string{"queue", "fail"} {
		for _, callers := range []int{12, 24, 48} {
			inFakeTime(t, fmt.Sprintf("%s, %d callers", onFull, callers), func(t *testing.T, c *fakeConn) {
				c.list(fmt.Sprintf(`{"maxInFlight":4,"onFull":%q}`, onFull), "abc")
				c.connect("abc")
				calls := c.closedLoop(callers, 5*time.Second, map[string]behaviour{"a": atOnce, "b": healthy, "c": healthy})
				require.LessOrEqual(t, calls.failures()*20, len(calls), "%d of %d calls failed", calls.failures(), len(calls))
				require.InDelta(t, 800, len(calls)-calls.failures(), 16, "of 800 that b and c can serve in 5 s")

				passes(time.Second)
				calls = c.closedLoop(callers, 5*time.Second, map[string]behaviour{"a": atOnce, "b": atOnce, "c": atOnce})
				require.Greater(t, calls.failures(), 10_000, "of 15,000 to 30,000 in 5 s")
			})
		}
	}
}

// How calls spread where nodes differ.
func TestClosedLoops(t *testing.T) {
	inFakeTime(t, "without the penalty most calls fail", func(t *testing.T, c *fakeConn) {
		c.list(`{"failurePenalty":"0s"}`, "abc")
		c.connect("abc")
		calls := c.closedLoop(12, time.Second, map[string]behaviour{"a": always(0, errAtOnce), "b": slow, "c": slow})
		require.Greater(t, calls.failures(), len(calls)/2)
	})
	inFakeTime(t, "a node that hangs takes its part and no more", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "abc")
		c.connect("abc")
		calls := c.closedLoop(12, 2*time.Second, map[string]behaviour{"a": always(500*time.Millisecond, errDeadline), "b": slow, "c": slow})
		require.InDelta(t, 4*4, calls.failures(), 4, "late: four at a time")
		require.Zero(t, c.endpoint("a").Penalty)
	})
	inFakeTime(t, "when all fail none is preferred", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "abc")
		c.connect("abc")
		picks := map[string]int{}
		for _, call := range c.closedLoop(12, time.Second, map[string]behaviour{"a": always(0, errAtOnce), "b": always(0, errAtOnce), "c": always(0, errAtOnce)}) {
			picks[call.node]++
		}
		require.InDelta(t, picks["a"], picks["b"], 6)
		require.InDelta(t, picks["a"], picks["c"], 6)
	})
	inFakeTime(t, "a node that fails one call in ten is not starved", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "abc")
		c.connect("abc")
		var mu sync.Mutex
		n, last, longest := 0, time.Duration(0), time.Duration(0)
		calls := c.closedLoop(12, 5*time.Second, map[string]behaviour{"b": slow, "c": slow, "a": func(since time.Duration) (time.Duration, error) {
			mu.Lock()
			defer mu.Unlock()
			longest, last = max(longest, since-last), since
			if n++; n%10 == 0 {
				return 0, errAtOnce
			}
			return 20 * time.Millisecond, nil
		}})
		require.Less(t, longest, time.Second, "as long as a penalty lasts")
		require.Less(t, calls.failures(), len(calls)/20)
	})
}

// Equal concurrency is not equal totals: a server that takes three times as long
// finishes a third of the calls.
func TestTotalsFollowSpeed(t *testing.T) {
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ab")
		c.connect("ab")
		const seconds = 30
		by := c.closedLoop(20, seconds*time.Second, map[string]behaviour{"a": always(100*time.Millisecond, nil), "b": always(300*time.Millisecond, nil)}).served()
		a, b := float64(by["a"])*0.1/seconds, float64(by["b"])*0.3/seconds
		t.Logf("in flight, on average: a %.1f, b %.1f", a, b)
		t.Logf("calls: a %d, b %d", by["a"], by["b"])
		require.InDelta(t, a, b, 0.5)
		require.InDelta(t, 3, float64(by["a"])/float64(by["b"]), 0.1)
	})
}

// How long a failure weighs on its node.
func TestPenaltyLasts(t *testing.T) {
	fails := func(c *fakeConn, config string, want int64) {
		c.tb.Helper()
		c.list(config, "ab")
		before := c.endpoint("a").Penalty + c.endpoint("b").Penalty
		c.picks(1, errAtOnce)
		require.Equal(c.tb, want, c.endpoint("a").Penalty+c.endpoint("b").Penalty-before, "after %s", config)
	}
	inFakeTime(t, "as configured", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ab")
		c.connect("ab")
		fails(c, `{"failurePenalty":"60s"}`, 1)
		fails(c, `{"failurePenalty":"0s"}`, 0)
		passes(10 * time.Second)
		fails(c, `{}`, 1)
		passes(990 * time.Millisecond)
		require.EqualValues(t, 2, c.endpoint("a").Penalty+c.endpoint("b").Penalty)
		passes(20 * time.Millisecond)
		require.EqualValues(t, 1, c.endpoint("a").Penalty+c.endpoint("b").Penalty, "by default a second")
		passes(time.Minute)
		require.Zero(t, c.endpoint("a").Penalty+c.endpoint("b").Penalty)
	})
	inFakeTime(t, "it takes room while a node is at its cap", func(t *testing.T, c *fakeConn) {
		c.list(`{"failurePenalty":"60s","maxInFlight":1,"onFull":"fail"}`, "ab")
		c.connect("ab")
		c.picks(6, errAtOnce)
		require.NotContains(t, c.at(), "full")
		_, done := c.pick()
		require.Contains(t, c.at(), "full")
		done(doneWith(nil))
		require.NotContains(t, c.at(), "full")
		c.pick()
		passes(61 * time.Second)
		c.pick()
		require.Contains(t, c.at(), "full")
	})
	inFakeTime(t, "an old attempt leaves none", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ab")
		c.connect("ab")
		at, done := c.pick()
		passes(1100 * time.Millisecond)
		done(doneWith(errAtOnce))
		require.Zero(t, c.endpoint(at).Penalty)
	})
}
