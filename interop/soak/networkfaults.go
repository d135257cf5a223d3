package main

import (
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// networkFaults happen on the way to a server.
var networkFaults = []fault{
	{name: "reset (TCP RST)", share: 3,
		begin: func(t target, _ uint32) error { t.member.now().proxy.Reset(); return nil }},
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
			set(t.member.now().proxy, on, roll)
			return nil
		}
	}
	return fault{name: name, share: share, begin: toggle(true), end: toggle(false)}
}
