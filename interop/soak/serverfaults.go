package main

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// serverFaults happen to a server.
var serverFaults = []fault{
	{name: "stop, start", share: 3, over: true,
		begin: func(t target, _ uint32) error { t.member.now().stop(); return nil },
		end:   func(t target, _ uint32) error { return t.member.now().restart() }},
	{name: "restart", share: 2,
		begin: func(t target, _ uint32) error { return t.member.now().restart() }},
	{name: "replace by a new address", share: 1, begin: replace},
	{name: "drain (GOAWAY)", share: 4,
		begin: func(t target, _ uint32) error { t.member.now().each((*leastconntest.Node).GoAway); return nil }},
	{name: "age (max connection age)", share: 3,
		begin: func(t target, _ uint32) error { return t.member.now().age(true) },
		end:   func(t target, _ uint32) error { return t.member.now().age(false) }},
	onNodes("hang", 2, func(n *leastconntest.Node, on bool, _ uint32) { n.HoldUnary(on) }),
	onNodes("slow server", 2, func(n *leastconntest.Node, on bool, roll uint32) {
		n.SetDelay(0)
		if on {
			n.SetDelay(time.Duration(roll%200) * time.Millisecond)
		}
	}),
	onNodes("fail", 3, func(n *leastconntest.Node, on bool, roll uint32) {
		n.SetFail(codes.OK)
		if on {
			n.SetFail(failures[roll%uint32(len(failures))])
		}
	}),
	onNodes("panic", 1, func(n *leastconntest.Node, on bool, _ uint32) { n.SetPanic(on) }),
	onNodes("unhealthy", 2, func(n *leastconntest.Node, on bool, _ uint32) { n.SetServing(!on) }),
	{name: "end all streams", share: 1,
		begin: func(t target, _ uint32) error { t.member.now().each((*leastconntest.Node).EndStreams); return nil }},
	{name: "fail all streams", share: 1,
		begin: func(t target, roll uint32) error {
			t.member.now().each(func(n *leastconntest.Node) { n.FailStreams(failures[roll%uint32(len(failures))]) })
			return nil
		}},
}

// failures are what servers answer that fail; the first is retried where retries are configured.
var failures = []codes.Code{codes.Unavailable, codes.Unavailable, codes.Aborted, codes.ResourceExhausted}

// onNodes is a fault that is switched on and off.
func onNodes(name string, share int, set func(n *leastconntest.Node, on bool, roll uint32)) fault {
	toggle := func(on bool) func(target, uint32) error {
		return func(t target, roll uint32) error {
			t.member.now().each(func(n *leastconntest.Node) { set(n, on, roll) })
			return nil
		}
	}
	return fault{name: name, share: share, begin: toggle(true), end: toggle(false)}
}

// replace puts a new server in the member's place, as a rollout does: the lists change, then the old one goes.
func replace(t target, _ uint32) error {
	old, err := t.member.replace()
	if err != nil {
		return err
	}
	defer old.close()
	return t.site.push()
}
