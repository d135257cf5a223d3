package leastconnbalancer_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What lists change, and what they do not.
func TestLists(t *testing.T) {
	play(t, []row{
		{name: "two nodes become three", script: `
			list a b;   hold 4 -> a2 b2
			list a b c; hold 2 -> c2; hold 3 -> a1 b1 c1; conns a1 b1 c1`},
		{name: "one becomes five", script: `
			list a;         hold 8 -> a8
			list a b c d e; hold 32 -> b8 c8 d8 e8; count a8 b8 c8 d8 e8`},
		{name: "a burst meets newcomers", script: `
			list a;       hold 40 -> a40
			list a b c d; burst 120 -> b40 c40 d40; conns a1 b1 c1 d1`},
		{name: "an idle newcomer is used", script: `list a b; list a b c; call 3 -> a1 b1 c1`},
		{name: "streams end after a scale-out", script: `
			list a b; hold 8 -> a4 b4; list a b c; end a4; hold 8 -> a4 c4
			end a b4; hold 8 -> a4 b4; end b; hold 2 -> b2`},
		{name: "one leaves", script: `
			list a b c; hold 6 -> a2 b2 c2
			list a b;   hold 4 -> a2 b2; count a4 b4 c2; end c1; count a4 b4 c1; end c1; count a4 b4`},
		{name: "one leaves and returns", script: `
			list a b; hold 8 -> a4 b4; list b; count a4 b4; list a b; hold 4 -> a2 b2`},
		{name: "streams end while their node is away", script: `
			list a b; hold 12 -> a6 b6
			list b; end a1; list a b; list b; end a1; list a b; list b; cancel a1; list a b
			hold 3 -> a3; count a6 b6`},
		{name: "all are replaced", script: `
			list a b; hold 6 -> a3 b3; list c d; hold 6 -> c3 d3
			end a b2; count b1 c3 d3; end b; count c3 d3; call 4 -> c2 d2`},
		{name: "the same list again", script: `
			list a b c; hold 6 -> a2 b2 c2; list a b c; list a b c; list c b a; config {}; config {}
			end a1; hold 1 -> a1; conns a1 b1 c1`},
		{name: "empty", script: `
			list a b; hold 5; end a; empty; fails zero addresses; list a b; call 1 -> a1; hold 2 -> a2; conns a2 b2
			empty; empty; end a b; count; list a; hold 1 -> a1`},
		{name: "listed twice", script: `
			list a b:5 b b:2 c a; hold 21 -> a3 b15 c3; conns a1 b1 c1
			list b a b:5 c; hold 16 -> a8 c8; conns a1 b1 c1`},
	}...)
}

// What becomes of connections changes no count but that of lost streams.
func TestConnections(t *testing.T) {
	play(t, []row{
		{name: "GOAWAY", script: `
			list a; hold 6 -> a6; goaway a; goaway a; goaway a; conns a4
			list a b; hold 6 -> b6; end a; hold 6 -> a6`},
		{name: "a node flaps", script: `
			list a; hold 6 -> a6; list a b c; stop c; call 3 -> b3; start c; stop c; start c; hold 6 -> b3 c3`},
		{name: "streams of a node that dies", script: `
			list a b; hold 6 -> a3 b3; stop b; count a3 b0; start b; hold 3 -> b3`},
		{name: "health", script: `
			list a b; hold 4 -> a2 b2; unwell a; call 3 -> b3; well a; unwell a; hold 3 -> b3
			well a; hold 3 -> a3; conns a1 b1`},
		{name: "all unwell", script: `
			list a b c; hold 3 -> a1 b1 c1; unwell a; unwell b; unwell c; fails NOT_SERVING; wait 2
			well c; opened c c; call 1 -> c1; well a; well b; hold 4 -> a2 b2; conns a1 b1 c1`},
		{name: "all lost, one back", script: `
			list a b; hold 2; stop a; stop b; fails connection refused; wait 3; start b; opened b b b; count a0 b3
			stop b; wait 1; start a; opened a`},
	}...)
}

// A policy above this one may have it connect before there is a list: RPCs wait for the list.
func TestExitIdleBeforeTheFirstList(t *testing.T) {
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.balancer.ExitIdle()
		updates, _ := c.published()
		require.Zero(t, updates)
		c.list("", "a")
		c.balancer.ExitIdle()
		c.connect("a")
		require.Equal(t, "a", c.at())
	})
}
