package leastconnbalancer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Levels connect side by side, and so does their time to do so run.
func TestSilentLevelsAreWaitedForTogether(t *testing.T) {
	for config, want := range failovers {
		inFakeTime(t, config, func(t *testing.T, c *fakeConn) {
			c.list(config, "a", "b", "c", "d", "e", "f")
			c.connect("f")
			c.waitsFor(want, "f")

			// One that begins later has its own time, and keeps it when those
			// above it come and go.
			c.report("a", connecting, ready)
			passes(10 * want)
			c.list(config, "a", "", "f") // the level is gone, and comes anew
			c.list(config, "a", "g", "f")
			c.report("g", connecting)
			passes(want / 2)
			c.report("a", idle, connecting, failure)
			c.waitsFor(want-want/2, "f")
		})
	}
}

// A level that reconnects begins anew, whichever level RPCs use.
func TestLowerLevelReconnects(t *testing.T) {
	inFakeTime(t, "below", func(t *testing.T, c *fakeConn) {
		c.list(`{"priorityFailover":"10s"}`, "a", "b", "c")
		c.connect("abc")
		passes(time.Hour)
		c.report("b", idle, connecting)
		passes(4 * time.Second)
		c.report("a", idle, connecting, failure)
		c.waitsFor(6*time.Second, "c")
		c.report("b", ready)
		require.Equal(t, "b", c.at())
	})
}
