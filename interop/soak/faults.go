package main

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// fault is a kind of fault. Adding one to a table is all that it takes to have it injected, logged and counted.
type fault struct {
	name  string
	share int  // how often it is drawn, relative to the others of its table
	over  bool // it may go on over a quiet point; that changes nothing of what is in flight there
	begin func(t target, roll uint32) error
	end   func(t target, roll uint32) error // nil if it is over at once
}

// target is whom a fault happens to.
type target struct {
	env     *env
	member  *member
	channel *channel
}

// find returns the fault of that name; the plan knows no others.
func find(faults []fault, name string) fault {
	for _, f := range faults {
		if f.name == name {
			return f
		}
	}
	panic("soak: no fault " + name)
}

// env is what a run happens to.
type env struct {
	fleet    *fleet
	channels []*channel
}

// push tells all channels their lists.
func (s *env) sendLists() error {
	for _, c := range s.channels {
		if err := c.sendList(); err != nil {
			return err
		}
	}
	return nil
}

// serverFaults happen to a server.
var serverFaults = []fault{
	{name: "stop, start", share: 3, over: true,
		begin: func(t target, _ uint32) error { t.member.current().stop(); return nil },
		end:   func(t target, _ uint32) error { return t.member.current().restart() }},
	{name: "restart", share: 2,
		begin: func(t target, _ uint32) error { return t.member.current().restart() }},
	{name: "replace by a new address", share: 1, begin: replace},
	{name: "drain (GOAWAY)", share: 4,
		begin: func(t target, _ uint32) error { t.member.current().goAway(); return nil }},
	{name: "age (max connection age)", share: 3,
		begin: func(t target, _ uint32) error { return t.member.current().age(true) },
		end:   func(t target, _ uint32) error { return t.member.current().age(false) }},
	{name: "limit of streams", share: 4,
		begin: func(t target, roll uint32) error { t.member.current().allow(roll % (tightStreams + 1)); return nil },
		end:   func(t target, _ uint32) error { s := t.member.current(); s.allow(s.streamLimit); return nil }},
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
		begin: func(t target, _ uint32) error { t.member.current().each((*leastconntest.Node).EndStreams); return nil }},
	{name: "fail all streams", share: 1,
		begin: func(t target, roll uint32) error {
			t.member.current().each(func(n *leastconntest.Node) { n.FailStreams(failures[roll%uint32(len(failures))]) })
			return nil
		}},
}

// failures are what servers answer that fail; the first is retried where retries are configured.
var failures = []codes.Code{codes.Unavailable, codes.Unavailable, codes.Aborted, codes.ResourceExhausted}

// onNodes is a fault that is switched on and off.
func onNodes(name string, share int, set func(n *leastconntest.Node, on bool, roll uint32)) fault {
	toggle := func(on bool) func(target, uint32) error {
		return func(t target, roll uint32) error {
			t.member.current().each(func(n *leastconntest.Node) { set(n, on, roll) })
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
	return t.env.sendLists()
}

// networkFaults happen on the way to a server.
var networkFaults = []fault{
	{name: "reset (TCP RST)", share: 3,
		begin: func(t target, _ uint32) error { t.member.current().proxy.Reset(); return nil }},
	onNetwork("refuse", 2, func(p *leastconntest.Proxy, on bool, _ uint32) { p.Refuse(on) }),
	onNetwork("reset and refuse", 2, func(p *leastconntest.Proxy, on bool, _ uint32) {
		p.Refuse(on)
		if on {
			p.Reset()
		}
	}),
	onNetwork("blackhole", 3, func(p *leastconntest.Proxy, on bool, roll uint32) {
		if p.Blackhole(on); !on {
			breakSome(p, roll)
		}
	}),
	onNetwork("half-open", 3, func(p *leastconntest.Proxy, on bool, roll uint32) {
		if p.HalfOpen(leastconntest.Direction(roll/2%2), on); !on {
			breakSome(p, roll)
		}
	}),
	onNetwork("slow link", 3, func(p *leastconntest.Proxy, on bool, roll uint32) {
		p.SetDelay(0)
		if on {
			p.SetDelay(time.Duration(1+roll%100) * time.Millisecond)
		}
	}),
	onNetwork("narrow link", 2, func(p *leastconntest.Proxy, on bool, roll uint32) {
		p.SetRate(0)
		if on {
			p.SetRate(4<<10 + int(roll%(60<<10)))
		}
	}),
}

// breakSome lets half of the networks that were silent come back with their connections broken.
func breakSome(p *leastconntest.Proxy, roll uint32) {
	if roll%2 == 0 {
		p.Reset()
	}
}

// onNetwork is a fault that is switched on and off.
func onNetwork(name string, share int, set func(p *leastconntest.Proxy, on bool, roll uint32)) fault {
	toggle := func(on bool) func(target, uint32) error {
		return func(t target, roll uint32) error {
			set(t.member.current().proxy, on, roll)
			return nil
		}
	}
	return fault{name: name, share: share, begin: toggle(true), end: toggle(false)}
}

// listFaults happen to one node in one channel's list.
var listFaults = []fault{
	{name: "flap (out of the list)", share: 3, over: true,
		begin: onList(func(l *list, node int, _ uint32) { l.out[node] = true }),
		end:   onList(func(l *list, node int, _ uint32) { delete(l.out, node) })},
	{name: "weight", share: 3, over: true,
		begin: onList(func(l *list, node int, roll uint32) { l.weights[node] = weights[roll%uint32(len(weights))] }),
		end:   onList(func(l *list, node int, _ uint32) { delete(l.weights, node) })},
	{name: "priority", share: 1, over: true,
		begin: onList(func(l *list, node int, roll uint32) { l.priorities[node] = roll % 3 }),
		end:   onList(func(l *list, node int, _ uint32) { delete(l.priorities, node) })},
	{name: "second address", share: 2, over: true,
		begin: onList(func(l *list, node int, roll uint32) { l.dual[node] = roll }),
		end:   onList(func(l *list, node int, _ uint32) { delete(l.dual, node) })},
}

// weights are those that faults give; 0 drains.
var weights = []uint32{0, 2, 3, 5, 100}

// onList changes the list and tells it.
func onList(change func(l *list, node int, roll uint32)) func(target, uint32) error {
	return func(t target, roll uint32) error {
		return t.channel.change(func(l *list) { change(l, t.member.index, roll) })
	}
}

// channelFaults happen to a channel.
var channelFaults = []fault{
	{name: "empty list", share: 1,
		begin: onList(func(l *list, _ int, _ uint32) { l.empty = true }),
		end:   onList(func(l *list, _ int, _ uint32) { l.empty = false })},
	{name: "same list in another order", share: 2,
		begin: onList(func(l *list, _ int, roll uint32) { l.turn = int(roll % maxNodes) })},
	{name: "resolver error", share: 2,
		begin: func(t target, _ uint32) error {
			t.channel.current().ReportError(errors.New("soak: the resolver fails on request"))
			return nil
		}},
	onPolicy("configuration", 2, func(policy *leastconnbalancer.Config, roll uint32) {
		policy.PriorityFailover = leastconnbalancer.NewDuration(time.Duration(roll%500) * time.Millisecond)
		if roll%3 == 0 {
			policy.StreamLimit = leastconnbalancer.StreamLimitIgnore
		}
		if policy.Reports != nil {
			policy.Reports = reportsEach(time.Duration(100+roll%400) * time.Millisecond)
			if roll%4 == 0 {
				policy.Reports = nil
			}
		}
	}),
	onPolicy("resource key", 2, func(policy *leastconnbalancer.Config, _ uint32) { policy.ResourceKey += moved }),
	{name: "close and dial again", share: 1,
		begin: func(t target, _ uint32) error { return t.channel.redial() }},
}

// onPolicy is a fault that changes a channel's policy for a while.
func onPolicy(name string, share int, change func(policy *leastconnbalancer.Config, roll uint32)) fault {
	return fault{name: name, share: share,
		begin: func(t target, roll uint32) error {
			policy := t.channel.spec.policy
			change(&policy, roll)
			return t.channel.configure(policy)
		},
		end: func(t target, _ uint32) error { return t.channel.configure(t.channel.spec.policy) },
	}
}
