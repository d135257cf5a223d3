package main

import (
	"errors"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

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
			t.channel.now().ReportError(errors.New("soak: the resolver fails on request"))
			return nil
		}},
	onPolicy("configuration", 2, func(policy *leastconnbalancer.Config, roll uint32) {
		policy.PriorityFailover = leastconnbalancer.NewDuration(time.Duration(roll%500) * time.Millisecond)
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
