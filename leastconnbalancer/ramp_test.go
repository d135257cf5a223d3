package leastconnbalancer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// By default a ramp is linear.
func TestRampIsLinear(t *testing.T) {
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.list(`{"slowStart":{"window":"256s"}}`, "a")
		c.ready("a")
		c.list(`{"slowStart":{"window":"256s"}}`, "ab")
		c.ready("b")
		for _, want := range []float64{0.1, 0.25, 0.5, 0.75, 1, 1} {
			require.InDelta(t, want, c.share("b"), 0.005)
			passes(64 * time.Second)
		}
	})
}

// share is the part of its weight that the endpoint has.
func (c *fakeConn) share(name string) float64 {
	c.t.Helper()
	for _, l := range state.Ledgers() {
		for _, n := range l.Snapshot().Endpoints {
			if n.Addresses[0] == name && len(n.Members) > 0 {
				return n.Members[0].SlowStartFactor
			}
		}
	}
	require.Fail(c.t, "the endpoint is in no ledger", name)
	return 0
}

// The smallest share is one that scores can be made of.
func TestLeastShare(t *testing.T) {
	const least = `{"slowStart":{"window":"3600s","minWeightPercent":1e-320,"aggression":0.01}}`
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.list(least, "ab")
		c.ready("ab")
		c.list(least, "abcd")
		c.ready("c")
		for range 40 {
			passes(time.Second)
			c.report("d", idle, connecting, failure, idle)
			c.ready("d")
			c.report("a", idle)
			c.report("b", idle)
			for range 50 {
				require.Contains(t, []string{"c", "d"}, c.at())
			}
			c.ready("ab")
			require.Contains(t, []string{"a", "b"}, c.at())
		}
	})
}
