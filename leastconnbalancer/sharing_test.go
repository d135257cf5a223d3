package leastconnbalancer_test

import (
	"testing"
)

// Channels of one resource key have one load, and each its own members.
func TestSharing(t *testing.T) {
	play(t, []row{
		{name: "same target", script: `
			list a; y: list a b; hold 6 -> a6; y: hold 6 -> b6; close; count a0 b6; y: hold 6 -> a6`},
		{name: "same key", config: `{"resourceKey":"KEY"}`, script: `
			list a; y: list a b; hold 6 -> a6; y: hold 6 -> b6; close; y: hold 6 -> a6`},
		{name: "other keys", config: `{"resourceKey":"KEY"}`, script: `
			y: config {"resourceKey":"KEY2"}; z: config {}
			list a; y: list a b; z: list a b; hold 6 -> a6; y: hold 6 -> a3 b3; z: hold 2 -> a1 b1`},
		{name: "another key moves the channel", script: `
			list a b; hold 6 -> a3 b3; config {"resourceKey":"KEY"}; hold 4 -> a2 b2; end a1
			config {}; hold 1 -> a1; count a3 b3; conns a1 b1`},
		{name: "what has left does not move", script: `
			y: config {"resourceKey":"KEY"}; y: list a; y: hold 3 -> a3
			list a b; hold 2; list b; config {"resourceKey":"KEY"}; list a b; hold 3 -> b3`},
		{name: "weights", script: `
			list a b; y: list a:3 b; z: list a:0 b
			y: hold 8 -> a6 b2; hold 4 -> b4; z: hold 2 -> b2; hold 2 -> a2; y: hold 16 -> a16
			z: list a b:0; z: call 1 -> a1; hold 10 -> b10; conns a3 b3`},
		{name: "levels", config: `{"resourceKey":"KEY","priorityFailover":"3600s"}`, script: `
			list a b c/1; y: list a/1 b c
			hold 4 -> a2 b2; y: hold 4 -> b1 c3; hold 3 -> a2 b1; y: list a b/1 c/1; y: hold 1 -> a1; close; count a1 b1 c3`},
		{name: "caps", config: `{"maxInFlight":2}`, script: `
			y: config {"maxInFlight":4}; list a; y: list a
			hold 2; queue 1; y: hold 2; y: queue 1; y: end a1; y: opened a; y: end a2; end a1; opened a`},
		{name: "a lost node", script: `
			list a b; y: list a b; hold 4 -> a2 b2; y: hold 4 -> a2 b2; stop a; y: hold 1 -> b1; start a; hold 5 -> a5`},
		{name: "another policy and back", script: `
			list a b; y: list a b; hold 4 -> a2 b2; y: hold 4 -> a2 b2; away; back; away; back
			count a4 b4; list a b c; hold 4 -> c4; end a b; y: hold 4 -> a2 b2`},
		{name: "a new policy finds what the old one has left", script: `
			list a; hold 4 -> a4; away; count a4; back; list a b; hold 4 -> b4; end a2; hold 2 -> a2`},
		{name: "a queue each", config: `{"maxInFlight":1,"maxQueued":2}`, script: `
			list a; y: list a; hold 1; queue 2; full; y: queue 2; y: full; end a
			opened a; end a; opened a; end a; y: opened a; y: end a; y: opened a; y: end a; call 1 -> a1`},
		{name: "a closed channel leaves its queue", config: `{"maxInFlight":1}`, script: `
			list a; y: list a; y: hold 1; queue 3; y: queue 2; close; y: end a; y: opened a; y: end a; y: opened a`},
	}...)
}
