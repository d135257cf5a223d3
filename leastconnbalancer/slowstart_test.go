package leastconnbalancer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// ramp is the part of its weight that the endpoint has.
func (c *fakeConn) ramp(name string) float64 {
	c.tb.Helper()
	members := c.endpoint(name).Members
	require.NotEmpty(c.tb, members)
	return members[0].SlowStartFactor
}

// By default a ramp is linear, whatever lists and configurations come meanwhile.
func TestRampIsLinear(t *testing.T) {
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.list(`{"slowStart":{"window":"256s"}}`, "a")
		c.connect("a")
		c.list(`{"slowStart":{"window":"256s"}}`, "ab")
		c.connect("b")
		for _, want := range []float64{0.1, 0.25, 0.5, 0.75, 1, 1} {
			require.InDelta(t, want, c.ramp("b"), 0.005)
			passes(32 * time.Second)
			c.list(`{"slowStart":{"window":"256s"},"maxInFlight":9}`, "ba")
			passes(32 * time.Second)
			c.list(`{"slowStart":{"window":"256s"}}`, "ab")
		}
	})
}

// A newcomer among busy nodes is not starved, however small its part.
func TestNewcomerIsNotStarved(t *testing.T) {
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.list(`{"slowStart":{"window":"3600s"}}`, "abc")
		c.connect("abc")
		for range 6 {
			_, end := c.pick()
			defer end(balancer.DoneInfo{})
		}
		c.list(`{"slowStart":{"window":"3600s"}}`, "abcd")
		c.connect("d")
		by := map[string]int{}
		for range 310 { // weights of 1, 1, 1 and 0.1
			by[c.at()]++
		}
		require.InDelta(t, 10, by["d"], 1, "calls: %v", by)
	})
}

// The smallest part is one that scores can be made of.
func TestLeastPart(t *testing.T) {
	const least = `{"slowStart":{"window":"3600s","minWeightPercent":1e-320,"aggression":0.01}}`
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.list(least, "ab")
		c.connect("ab")
		c.list(least, "abcd")
		c.connect("c")
		for range 40 {
			passes(time.Second)
			c.report("d", idle, connecting, failure, idle)
			c.connect("d")
			c.report("a", idle)
			c.report("b", idle)
			for range 50 {
				require.Contains(t, []string{"c", "d"}, c.at())
			}
			c.connect("ab")
			require.Contains(t, []string{"a", "b"}, c.at())
		}
	})
}

// A balancer whose first list comes to a ledger in use, as that of another locality, starts
// slowly what is new there. One that comes by another resource key has used its endpoints.
func TestFirstListAmongWarmNodes(t *testing.T) {
	const slowly = `{"slowStart":{"window":"256s"}}`
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.list(slowly, "ab")
		c.connect("ab")
		second := newFakeConn(t)
		second.build(balancer.Get(leastconnbalancer.Name))
		defer second.balancer.Close()
		second.list(slowly, "bd")
		second.connect("bd")
		require.Equal(t, 0.1, second.ramp("d"))
		for _, m := range second.endpoint("b").Members {
			require.EqualValues(t, 1, m.SlowStartFactor)
		}
		passes(256 * time.Second)
		require.EqualValues(t, 1, second.ramp("d"))

		third := newFakeConn(t)
		third.build(balancer.Get(leastconnbalancer.Name))
		defer third.balancer.Close()
		third.list(`{"resourceKey":"elsewhere","slowStart":{"window":"256s"}}`, "e")
		third.connect("e")
		third.list(slowly, "e")
		require.EqualValues(t, 1, third.ramp("e"), "it has been in use")
	})
}
