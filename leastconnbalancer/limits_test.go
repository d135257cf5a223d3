package leastconnbalancer_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// What docs/limits.md answers to questions that many have, as far as no other test shows it.

// Calls of one user go around as others do; only a stream stays where it is.
func TestNoSessionSticks(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c")
	c := e.dial(ns...)
	e.ctx = metadata.AppendToOutgoingContext(e.ctx, "cookie", "user-1", "x-session-id", "1")
	require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 2}, tally(c.calls(6)))
}

// grpc-go ignores a hedging policy: an RPC is one pick.
func TestNoHedging(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c")
	c := e.dialWith(leastconntest.ChannelConfig{ServiceConfig: `{"loadBalancingConfig":[{"least_conn":{}}],"methodConfig":[{"name":[{}],
		"hedgingPolicy":{"maxAttempts":3,"hedgingDelay":"0s","nonFatalStatusCodes":["UNAVAILABLE"]}}]}`}, ns...)
	c.calls(5)
	require.EqualValues(t, 5, c.snapshot().EndpointSets[0].Picks)
}

// A hedge of one's own goes elsewhere, since the first one counts; the one that is cancelled
// counts no more.
func TestOwnHedges(t *testing.T) {
	play(t, row{name: "x", script: `list a b; hold 1; hold 1; count a1 b1; cancel a; call 2 -> a2`})
}

// All methods count alike; what is to be counted apart has a key of its own.
func TestMethodsCountAlike(t *testing.T) {
	play(t,
		row{name: "a stream and calls", script: `list a b; hold 2 -> a1 b1; end b; call 3 -> b3`},
		row{name: "another key", script: `
			list a b; hold 2 -> a1 b1; end b; y: config {"resourceKey":"KEY"}; y: list a b; y: call 4 -> a2 b2; call 3 -> b3`},
	)
}

// RPCs that wait for ready do so where others fail at once: while no endpoint can be
// connected to. For room both wait, or neither.
func TestWaitForReady(t *testing.T) {
	play(t,
		row{name: "an outage", script: `list a; stop a; fails connection refused; wait 2; start a; opened a a`},
		row{name: "no room", config: `{"maxInFlight":1,"onFull":"fail","failurePenalty":"0s"}`, script: `list a; hold 1; full`},
		row{name: "room", config: `{"maxInFlight":1,"failurePenalty":"0s"}`, script: `list a; hold 1; queue 2; end a; opened a; end a; opened a`},
	)
}
