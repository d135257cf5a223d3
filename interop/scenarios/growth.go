package main

import (
	"slices"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"
)

// growth is scenarios in which servers join.
func growth() []trial.Scenario {
	return []trial.Scenario{scaleOut(), trial.OneToTwo(), oneToFive(), addedOnly(), listResent(), sessionsEnd(), newTimeout()}
}

// scaleOut goes on after the servers are level.
func scaleOut() trial.Scenario {
	s := trial.ScaleOut()
	s.Change += ", then 3 more"
	s.After = trial.At("abc", 3, 3, 3)
	begin := s.Play
	s.Play = func(t *trial.Trial) {
		begin(t)
		for _, c := range t.Clients() {
			c.Open(3)
		}
	}
	return s
}

func oneToFive() trial.Scenario {
	return trial.Scenario{
		Name: "one to five", Change: "b, c, d and e join a, 32 more", Hosts: 5,
		Before: trial.At("abcde", 8), After: trial.At("abcde", 8, 8, 8, 8, 8),
		Play: func(t *trial.Trial) {
			c := t.Dial(trial.Dialing{})
			c.List("a")
			c.Open(8)
			c.List("abcde")
			t.Changed()
			c.Open(32)
		},
	}
}

func addedOnly() trial.Scenario {
	return trial.Scenario{
		Name: "added only", Change: "c joins while the connections to a and b stay as they are, 1 more", Hosts: 3,
		Before: trial.At("abc", 1, 1, 0), After: trial.At("abc", 1, 1, 1),
		Play: func(t *trial.Trial) {
			c := t.Dial(trial.Dialing{})
			c.List("ab")
			c.Open(2)
			c.List("abc")
			if n := c.Connections(); n != 3 {
				t.Fault("it took %d connections to connect to 3 servers", n)
			}
			t.Changed()
			c.Open(1)
		},
	}
}

// methods is a field of a service config that says nothing of load balancing.
const methods = `"methodConfig":[{"name":[{}],"timeout":"3600s"}]`

func listResent() trial.Scenario {
	return trial.Scenario{
		Name: "list sent again", Change: "a and b reversed, with new attributes, with a new method config; c joins, 4 more", Hosts: 3,
		Before: trial.At("abc", 4, 4, 0), After: trial.At("abc", 4, 4, 4),
		Play: func(t *trial.Trial) {
			c := t.Dial(trial.Dialing{})
			c.List("ab")
			c.Open(8)
			begun := c.Connections()
			for _, change := range []func(*resolver.State){reversed, newEndpointAttributes, newAddressAttributes} {
				c.Resend(change)
				t.Check()
			}
			c.Reconfigure(methods)
			t.Check()
			if n := c.Connections() - begun; n != 0 {
				t.Fault("lists of the same servers brought %d new connections", n)
			}
			c.List("abc")
			t.Changed()
			c.Open(4)
		},
	}
}

func reversed(s *resolver.State) { slices.Reverse(s.Endpoints) }

// generation is the key of an attribute that means nothing to anyone.
type generation struct{}

func newEndpointAttributes(s *resolver.State) {
	for i := range s.Endpoints {
		s.Endpoints[i].Attributes = attributes.New(generation{}, 1)
	}
}

func newAddressAttributes(s *resolver.State) {
	for i := range s.Endpoints {
		//lint:ignore SA1019 it is deprecated, and must still not make a new server of an old one
		s.Endpoints[i].Addresses[0].BalancerAttributes = attributes.New(generation{}, 2)
	}
}

func sessionsEnd() trial.Scenario {
	return trial.Scenario{
		Name: "sessions end", Change: "c joins a and b, the sessions on a end, 8 more", Hosts: 3,
		Before: trial.At("abc", 0, 4, 0), After: trial.At("abc", 4, 4, 4),
		Play: func(t *trial.Trial) {
			c := t.Dial(trial.Dialing{})
			c.List("ab")
			c.Open(8)
			c.List("abc")
			t.End("a")
			t.Changed()
			c.Open(8)
		},
	}
}

func newTimeout() trial.Scenario {
	return trial.Scenario{
		Name: "new method timeout", Change: "b joins a, the service config changes a method's timeout, 6 more", Hosts: 2,
		Before: trial.At("ab", 6, 0), After: trial.At("ab", 6, 6),
		Play: func(t *trial.Trial) {
			c := t.Dial(trial.Dialing{})
			c.List("a")
			c.Open(6)
			c.List("ab")
			c.Reconfigure(methods)
			t.Changed()
			c.Open(6)
		},
	}
}
