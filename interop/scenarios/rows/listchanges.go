package rows

import (
	"slices"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
)

// joins is scenarios in which servers join.
func joins() []scenario.Scenario {
	return []scenario.Scenario{scaleOut(), scenario.OneToTwo(), oneToFive(), addedOnly(), listResent(), sessionsEnd(), newTimeout()}
}

// scaleOut goes on after the servers are level.
func scaleOut() scenario.Scenario {
	s := scenario.ScaleOut()
	s.Change += ", then 3 more"
	s.After = scenario.Loads("abc", 3, 3, 3)
	begin := s.Play
	s.Play = func(r *scenario.Run) {
		begin(r)
		for _, c := range r.Clients() {
			c.Open(3)
		}
	}
	return s
}

func oneToFive() scenario.Scenario {
	return scenario.Scenario{
		Name: "one to five", Change: "b, c, d and e join a, 32 more", Hosts: 5,
		Before: scenario.Loads("abcde", 8), After: scenario.Loads("abcde", 8, 8, 8, 8, 8),
		Play: func(r *scenario.Run) {
			c := r.Dial(scenario.ClientConfig{})
			c.List("a")
			c.Open(8)
			c.List("abcde")
			r.RecordBefore()
			c.Open(32)
		},
	}
}

func addedOnly() scenario.Scenario {
	return scenario.Scenario{
		Name: "added only", Change: "c joins while the connections to a and b stay as they are, 1 more", Hosts: 3,
		Before: scenario.Loads("abc", 1, 1, 0), After: scenario.Loads("abc", 1, 1, 1),
		Play: func(r *scenario.Run) {
			c := r.Dial(scenario.ClientConfig{})
			c.List("ab")
			c.Open(2)
			c.List("abc")
			if n := c.Connections(); n != 3 {
				r.Fault("it took %d connections to connect to 3 servers", n)
			}
			r.RecordBefore()
			c.Open(1)
		},
	}
}

// methods is a field of a service config that says nothing of load balancing.
const methods = `"methodConfig":[{"name":[{}],"timeout":"3600s"}]`

func listResent() scenario.Scenario {
	return scenario.Scenario{
		Name: "list sent again", Change: "a and b reversed, with new attributes, with a new method config; c joins, 4 more", Hosts: 3,
		Before: scenario.Loads("abc", 4, 4, 0), After: scenario.Loads("abc", 4, 4, 4),
		Play: func(r *scenario.Run) {
			c := r.Dial(scenario.ClientConfig{})
			c.List("ab")
			c.Open(8)
			begun := c.Connections()
			for _, change := range []func(*resolver.State){reversed, newEndpointAttributes, newAddressAttributes} {
				c.Resend(change)
				r.Check()
			}
			c.Reconfigure(methods)
			r.Check()
			if n := c.Connections() - begun; n != 0 {
				r.Fault("lists of the same servers brought %d new connections", n)
			}
			c.List("abc")
			r.RecordBefore()
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

func sessionsEnd() scenario.Scenario {
	return scenario.Scenario{
		Name: "sessions end", Change: "c joins a and b, the sessions on a end, 8 more", Hosts: 3,
		Before: scenario.Loads("abc", 0, 4, 0), After: scenario.Loads("abc", 4, 4, 4),
		Play: func(r *scenario.Run) {
			c := r.Dial(scenario.ClientConfig{})
			c.List("ab")
			c.Open(8)
			c.List("abc")
			r.End("a")
			r.RecordBefore()
			c.Open(8)
		},
	}
}

func newTimeout() scenario.Scenario {
	return scenario.Scenario{
		Name: "new method timeout", Change: "b joins a, the service config changes a method's timeout, 6 more", Hosts: 2,
		Before: scenario.Loads("ab", 6, 0), After: scenario.Loads("ab", 6, 6),
		Play: func(r *scenario.Run) {
			c := r.Dial(scenario.ClientConfig{})
			c.List("a")
			c.Open(6)
			c.List("ab")
			c.Reconfigure(methods)
			r.RecordBefore()
			c.Open(6)
		},
	}
}

// leaves is scenarios in which servers leave the list.
func leaves() []scenario.Scenario {
	return []scenario.Scenario{scenario.LeaveAndReturn(), allReturn(), rollingReplacement()}
}

func allReturn() scenario.Scenario {
	const first, second = "abcdefghij", "klmnopqrst"
	return scenario.Scenario{
		Name: "all gone and back", Change: "a to j give way to k to t and return beside them, 10 more", Hosts: 20,
		Before: scenario.Loads(first+second, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
		After:  scenario.Loads(first+second, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
		Play: func(r *scenario.Run) {
			c := r.Dial(scenario.ClientConfig{})
			c.List(first)
			c.Open(10)
			c.List(second)
			r.Check()
			c.List(first + second)
			r.RecordBefore()
			c.Open(10)
		},
	}
}

func rollingReplacement() scenario.Scenario {
	return scenario.Scenario{
		Name: "rolling replacement", Change: "d, e and f replace a, b and c in turn, 2 more each time; a, b and c end; 3 more", Hosts: 6,
		Before: scenario.Loads("def", 2, 2, 2), After: scenario.Loads("def", 3, 3, 3),
		Play: func(r *scenario.Run) {
			c := r.Dial(scenario.ClientConfig{})
			c.List("abc")
			c.Open(6)
			for _, list := range []string{"bcd", "cde", "def"} {
				c.List(list)
				r.Check()
				c.Open(2)
			}
			r.End("abc")
			r.Stop("abc")
			r.RecordBefore()
			c.Open(3)
		},
	}
}
