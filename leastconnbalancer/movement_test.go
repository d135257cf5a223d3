package leastconnbalancer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Nothing is waited for where nobody can take RPCs.
func TestLevelsComeAndGo(t *testing.T) {
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "", "b")
		c.ready("b")
		require.Equal(t, "b", c.at())
		c.list(`{}`, "a", "b")
		c.ready("a")
		require.Equal(t, "a", c.at())
		c.list(`{}`, "", "", "b")
		require.Equal(t, "b", c.at())
		c.list(`{}`, "", "", "b", "a")
		require.Equal(t, "b", c.at())
		c.ready("a")
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
		c.ready("bc")
		c.list(`{}`, "ab", "c")
		require.Equal(t, "b", c.at())
		c.report("b", idle)
		c.waitsFor(10*time.Second, "c")
	})
	inFakeTime(t, "connecting one joins a failed level", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "a", "bc")
		c.report("a", connecting, failure)
		c.ready("c")
		c.list(`{}`, "ab", "c")
		require.Equal(t, "c", c.at())
	})
	inFakeTime(t, "connecting one leaves failed ones behind", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ab", "c")
		c.ready("c")
		c.report("a", connecting, failure)
		require.Equal(t, "wait", c.at())
		c.list(`{}`, "a", "cb")
		require.Equal(t, "c", c.at())
		c.list(`{}`, "ad", "cb")
		require.Equal(t, "c", c.at(), "it has failed and not been ready since")
	})
	inFakeTime(t, "ready one leaves connecting ones behind", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ab", "c")
		c.ready("ac")
		require.Equal(t, "a", c.at())
		c.list(`{}`, "b", "ca")
		require.Equal(t, "wait", c.at())
		passes(10 * time.Second)
		require.Contains(t, []string{"a", "c"}, c.at())
	})
	inFakeTime(t, "level is made of others", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "a", "b")
		c.report("a", connecting, failure)
		c.ready("b")
		require.Equal(t, "b", c.at())
		c.list(`{}`, "c", "b")
		require.Equal(t, "b", c.at(), "it takes over from the one that has failed")
	})
}
