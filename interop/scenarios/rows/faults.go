package rows

import "github.com/leastconn/grpc-leastconn/interop/internal/scenario"

// faults is scenarios in which servers that stay in the list cannot be used for a while, or with a new connection only.
func faults() []scenario.Scenario {
	return []scenario.Scenario{
		scenario.Ageing(), goAwayOfOne(), goAwayInTurn(), flappingServer(), restart(), healthFlips(), notServing(),
	}
}

func goAwayOfOne() scenario.Scenario {
	return scenario.Scenario{
		Name: "GOAWAY of one", Change: "a replaces its connections, 6 more", Hosts: 3,
		Before: scenario.Loads("abc", 4, 4, 4), After: scenario.Loads("abc", 6, 6, 6),
		Play: func(r *scenario.Run) {
			c := r.Dial(scenario.ClientConfig{})
			c.List("abc")
			c.Open(12)
			r.GoAway("a")
			r.RecordBefore()
			c.Open(6)
		},
	}
}

func goAwayInTurn() scenario.Scenario {
	return scenario.Scenario{
		Name: "GOAWAY of all", Change: "a, b and c replace their connections in turn, d joins, 4 more", Hosts: 4,
		Before: scenario.Loads("abcd", 4, 4, 4, 0), After: scenario.Loads("abcd", 4, 4, 4, 4),
		Play: func(r *scenario.Run) {
			c := r.Dial(scenario.ClientConfig{})
			c.List("abc")
			c.Open(12)
			r.GoAway("abc")
			r.Check()
			c.List("abcd")
			r.RecordBefore()
			c.Open(4)
		},
	}
}

func flappingServer() scenario.Scenario {
	return scenario.Scenario{
		Name: "one server flaps", Change: "b and c join a, c stops and starts five times, 6 more", Hosts: 3,
		Before: scenario.Loads("abc", 6, 0, 0), After: scenario.Loads("abc", 6, 3, 3),
		Play: func(r *scenario.Run) {
			c := r.Dial(scenario.ClientConfig{})
			c.List("a")
			c.Open(6)
			c.List("abc")
			for range 5 {
				r.Stop("c")
				r.Restart("c")
				r.Check()
			}
			r.RecordBefore()
			c.Open(6)
		},
	}
}

func restart() scenario.Scenario {
	return scenario.Scenario{
		Name: "restart", Change: "b stops, which breaks its sessions, and starts again, 2 more", Hosts: 3,
		Before: scenario.Loads("abc", 2, 0, 2), After: scenario.Loads("abc", 2, 2, 2),
		Play: func(r *scenario.Run) {
			c := r.Dial(scenario.ClientConfig{})
			c.List("abc")
			c.Open(6)
			r.Stop("b")
			r.Restart("b")
			r.RecordBefore()
			c.Open(2)
		},
	}
}

// healthChecked lets a client ask the servers' health services.
var healthChecked = scenario.ClientConfig{Fields: []string{`"healthCheckConfig":{"serviceName":""}`}}

func healthFlips() scenario.Scenario {
	return scenario.Scenario{
		Name: "health flips", Change: "a is NOT_SERVING and back three times, 4 more", Hosts: 2,
		Before: scenario.Loads("ab", 4, 4), After: scenario.Loads("ab", 6, 6),
		Play: func(r *scenario.Run) {
			c := r.Dial(healthChecked)
			c.List("ab")
			c.Open(8)
			for range 3 {
				r.SetServing("a", false)
				r.Check()
				r.SetServing("a", true)
			}
			r.RecordBefore()
			c.Open(4)
		},
	}
}

func notServing() scenario.Scenario {
	return scenario.Scenario{
		Name: "NOT_SERVING", Change: "a is NOT_SERVING while 2 more open, and is back, 6 more", Hosts: 2,
		Before: scenario.Loads("ab", 4, 6), After: scenario.Loads("ab", 8, 8),
		Play: func(r *scenario.Run) {
			c := r.Dial(healthChecked)
			c.List("ab")
			c.Open(8)
			r.SetServing("a", false)
			c.Open(2)
			r.SetServing("a", true)
			r.RecordBefore()
			c.Open(6)
		},
	}
}
