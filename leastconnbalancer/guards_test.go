package leastconnbalancer_test

import (
	"testing"
)

// A cap bounds what a node has in flight, and says what becomes of the rest.
func TestCaps(t *testing.T) {
	play(t, []row{
		{name: "the rest waits, in order", config: `{"maxInFlight":1}`, script: `
			list a b; hold 2 -> a1 b1; queue 4; end a; opened a; cancel b; opened b; end a; opened a; end a; opened a`},
		{name: "the rest fails", config: `{"maxInFlight":2,"onFull":"fail"}`, script: `
			list a b; hold 4 -> a2 b2; full; end a1; hold 1 -> a1; full`},
		{name: "no more wait than may", config: `{"maxInFlight":1,"maxQueued":2}`, script: `
			list a; hold 1; queue 2; full; end a; opened a; queue 1; full; end a; opened a; end a; opened a`},
		{name: "a node's own cap wins", config: `{"maxInFlight":3}`, script: `
			list a<1 b<0 c<5 d; hold 20 -> a1 b11 c5 d3; hold 20 -> b20; list a<0 b<1 c d<5
			hold 5 -> a3 d2; list a<4 b<1 c d<5; queue 1; end c3; opened c; conns a1 b1 c1 d1`},
		{name: "a cap of a later list", config: `{"maxInFlight":3,"onFull":"fail"}`, script: `
			list a b; list a<1 b; hold 4 -> a1 b3; full; list a b; hold 2 -> a2; full`},
		{name: "caps at run time", script: `
			list a b; hold 6 -> a3 b3; config {"maxInFlight":4,"onFull":"fail"}; hold 2 -> a1 b1; full
			config {"maxInFlight":1,"onFull":"fail"}; full; end a3 b3; full; end a1; hold 1 -> a1; full
			config {"maxInFlight":1}; queue 2; config {"maxInFlight":1,"onFull":"fail"}; full; end a; opened a; end b; opened b
			config {}; hold 8 -> a4 b4; conns a1 b1`},
		{name: "queue at run time", config: `{"maxInFlight":1,"maxQueued":1}`, script: `
			list a; hold 1; queue 1; full; config {"maxInFlight":1,"maxQueued":2}; queue 1; full; end a; opened a; end a; opened a`},
		{name: "under another key", config: `{"maxInFlight":1}`, script: `
			list a; hold 1; config {"resourceKey":"KEY","maxInFlight":1}; hold 1; queue 1; end a1
			config {"resourceKey":"KEY2","maxInFlight":3}; opened a; hold 2; queue 1; config {"resourceKey":"KEY2","maxInFlight":4}; opened a`},
		{name: "a level spills, and takes back", config: `{"maxInFlight":2}`, script: `
			list a b c/1 d/2; hold 4 -> a2 b2; hold 3 -> c2 d1; end b1; hold 2 -> b1 d1
			queue 2; end c1; opened c; end a1; opened a; conns a1 b1 c1 d1`},
		{name: "only full levels spill", script: `
			list a<1 b/1; hold 3 -> a1 b2; list a/1 b; hold 3 -> b3`},
		{name: "the highest level first", config: `{"maxInFlight":1}`, script: `
			list a b/1 c/1; hold 3 -> a1 b1 c1; queue 2; end a; opened a; end c; opened c`},
		{name: "a level fails while RPCs wait", config: `{"maxInFlight":1,"failurePenalty":"0s"}`, script: `
			list a b/1; hold 2 -> a1 b1; queue 2; stop a; end b; opened b; end b; opened b; start a; call 1 -> a1`},
		{name: "all are lost while RPCs wait", config: `{"maxInFlight":1,"failurePenalty":"0s"}`, script: `
			list a; hold 1; queue 1; stop a; start a; opened a`},
	}...)
}

// An RPC that waits is woken by whatever makes room for it; the room of one must
// do for all.
func TestQueueWakes(t *testing.T) {
	const full = "y: list a; y: hold 1 -> a1; list a; queue 1; queue 1;"
	wakings := map[string]string{
		"release in another channel": "y: end a; opened a; end a; opened a",
		"cancel in another channel":  "y: cancel a; opened a; end a; opened a",
		"another channel closes":     "y: close; opened a; end a; opened a",
		"new node":                   "list a b; opened b; end b; opened b",
		"other list":                 "list b; opened b; end b; opened b",
		"new node below":             "list a b/1; opened b; end b; opened b",
		"new node above":             "list a/1 b; opened b; end b; opened b",
		"cap raised":                 `config {"maxInFlight":3}; opened a a`,
		"cap lifted":                 "config {}; opened a a",
		"own cap raised":             "list a<2; opened a; end a; opened a",
		"own cap lifted":             "list a<0; opened a a",
		"weight above 0":             "list a b:0; list a b:1; opened b; end b; opened b",
		"other resource key":         `config {"resourceKey":"KEY","maxInFlight":2}; opened a a`,
		"node is back":               "stop a; start a; opened a; end a; opened a",
	}
	var rows []row
	for name, waking := range wakings {
		rows = append(rows, row{name: name, config: `{"maxInFlight":1,"failurePenalty":"0s"}`, script: full + waking})
	}
	play(t, rows...)
}

// The highest level that can be used is used, and all connect.
func TestLevels(t *testing.T) {
	play(t, []row{
		{name: "the highest", script: `
			list a/2 b/1 c/1 d; conns a1 b1 c1 d1; hold 3 -> d3; call 3 -> d3; list a/2 b c d/1; hold 4 -> b2 c2; conns a1 b1 c1 d1`},
		{name: "numbers are an order", config: `{"priorityFailover":"3600s"}`, script: `
			list a/4294967295 b/7 c/100; call 1 -> b1; stop b; call 1 -> c1; stop c; call 1 -> a1; stop a; fails connection refused`},
		{name: "a failed level is not waited for", config: `{"priorityFailover":"3600s"}`, script: `
			list a b c/1; stop a; call 2 -> b2; stop b; call 2 -> c2; start b; call 2 -> b2; start a; hold 2 -> a1 b1`},
		{name: "a level comes back with its counts", config: `{"priorityFailover":"3600s","failurePenalty":"0s"}`, script: `
			list a b c/1; hold 5; end a1; unwell a; unwell b; hold 4 -> c4; well a; well b; hold 2; conns a1 b1 c1`},
		{name: "endpoints move between levels", config: `{"priorityFailover":"3600s"}`, script: `
			list a b c; hold 9 -> a3 b3 c3; list a/1 b c; list a/2 b/1 c; list a b/2 c/2; list a/2 b/2 c/2
			list a b/1 c/1; hold 2 -> a2; list a b c; hold 4 -> b2 c2; conns a1 b1 c1`},
		{name: "a draining level is passed over", config: `{"priorityFailover":"3600s"}`, script: `
			list a b c/1; hold 2 -> a1 b1; list a:0 b c/1; call 2 -> b2; list a:0 b:0 c/1; call 2 -> c2
			list a:1 b:0 c/1; call 2 -> a2; list a:0 b:0 c:0/1; fails all 3 endpoints are draining (weight 0)
			list a b c/1; hold 2 -> a1 b1; conns a1 b1 c1`},
		{name: "waiting RPCs go to the first that is back", script: `
			list a b/1 c/2; stop a; stop b; stop c; wait 2; start c; opened c c; start a; hold 1 -> a1; stop a; call 1 -> c1`},
	}...)
}

// A node that drains gets nothing new and keeps what it has.
func TestDraining(t *testing.T) {
	play(t, []row{
		{name: "one drains", script: `
			list a b; hold 6 -> a3 b3; list a:0 b; call 10 -> b10; hold 5 -> b5; end a1; list a b; hold 5 -> a5; conns a1 b1
			list a:0 b; end a; count a0 b8; list b; count b8`},
		{name: "all drain", script: `
			list a b c; hold 3 -> a1 b1 c1; list a:0 b:0 c:0; fails least_conn: all 3 endpoints are draining (weight 0)
			wait 2; list a:0 b c:0; opened b b; conns a1 b1 c1`},
		{name: "all drain from the start", script: `
			list a:0 b:0; fails all 2 endpoints are draining; list a b:0; call 2 -> a2; conns a1 b1`},
		{name: "weights change", script: `
			list a b; hold 4 -> a2 b2; list a b:3; hold 4 -> b4; list a:3 b:1; hold 16 -> a16; conns a1 b1`},
	}...)
}

// A node that is new, or back from a failure, starts slowly.
func TestSlowStart(t *testing.T) {
	const slowly = `{"slowStart":{"window":"3600s"},"failurePenalty":"0s"}`
	play(t, []row{
		{name: "a newcomer is not flooded", config: slowly, script: `
			list a b; ramp a1 b1; burst 200 -> a100 b100; list a b c; ramp a1 b1 c0.1; hold 20 -> a5 b5 c10; hold 2 -> a1 b1
			config {}; ramp a1 b1 c1; burst 96 -> c96; conns a1 b1 c1`},
		{name: "gone and listed again", config: slowly, script: `
			list a b c; ramp a1 b1 c1; hold 3 -> a1 b1 c1; list a b; list a b c; ramp a1 b1 c1
			list a b; end c; list a b c; ramp a1 b1 c0.1`},
		{name: "back from a failure", config: slowly, script: `list a b; ramp a1 b1; stop b; start b; ramp a1 b0.1; config {}; ramp a1 b1`},
		{name: "back from illness", config: slowly, script: `list a b; ramp a1 b1; unwell b; well b; ramp a1 b0.1`},
		{name: "fails and goes to another key", config: slowly, script: `
			list a b; unwell b; config {"resourceKey":"KEY","slowStart":{"window":"3600s"}}; ramp a1; well b; ramp a1 b0.1`},
		{name: "GOAWAY is no failure", config: slowly, script: `list a b; goaway a; goaway b; ramp a1 b1`},
		{name: "at run time", script: `
			list a b; list a b c; ramp a1 b1 c1; config {"slowStart":{"window":"3600s"}}; list a b; ramp a1 b1
			list a b c d; ramp a1 b1 c0.1 d0.1; config {"slowStart":{"window":"3600s","minWeightPercent":50}}; ramp a1 b1 c0.5 d0.5
			config {"slowStart":{"window":"0s"}}; ramp a1 b1 c1 d1; conns a1 b1 c2 d1`},
	}...)
}
