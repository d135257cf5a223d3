package main

import "github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"

// faults is scenarios in which servers that stay in the list cannot be used for a while, or with a new connection only.
func faults() []trial.Scenario {
	return []trial.Scenario{
		trial.Ageing(), goAwayOfOne(), goAwayInTurn(), flappingServer(), restart(), healthFlips(), notServing(),
	}
}

func goAwayOfOne() trial.Scenario {
	return trial.Scenario{
		Name: "GOAWAY of one", Change: "a replaces its connections, 6 more", Hosts: 3,
		Before: trial.At("abc", 4, 4, 4), After: trial.At("abc", 6, 6, 6),
		Play: func(t *trial.Trial) {
			c := t.Dial(trial.Dialing{})
			c.List("abc")
			c.Open(12)
			t.GoAway("a")
			t.Changed()
			c.Open(6)
		},
	}
}

func goAwayInTurn() trial.Scenario {
	return trial.Scenario{
		Name: "GOAWAY of all", Change: "a, b and c replace their connections in turn, d joins, 4 more", Hosts: 4,
		Before: trial.At("abcd", 4, 4, 4, 0), After: trial.At("abcd", 4, 4, 4, 4),
		Play: func(t *trial.Trial) {
			c := t.Dial(trial.Dialing{})
			c.List("abc")
			c.Open(12)
			t.GoAway("abc")
			t.Check()
			c.List("abcd")
			t.Changed()
			c.Open(4)
		},
	}
}

func flappingServer() trial.Scenario {
	return trial.Scenario{
		Name: "one server flaps", Change: "b and c join a, c stops and starts five times, 6 more", Hosts: 3,
		Before: trial.At("abc", 6, 0, 0), After: trial.At("abc", 6, 3, 3),
		Play: func(t *trial.Trial) {
			c := t.Dial(trial.Dialing{})
			c.List("a")
			c.Open(6)
			c.List("abc")
			for range 5 {
				t.Stop("c")
				t.Restart("c")
				t.Check()
			}
			t.Changed()
			c.Open(6)
		},
	}
}

func restart() trial.Scenario {
	return trial.Scenario{
		Name: "restart", Change: "b stops, which breaks its sessions, and starts again, 2 more", Hosts: 3,
		Before: trial.At("abc", 2, 0, 2), After: trial.At("abc", 2, 2, 2),
		Play: func(t *trial.Trial) {
			c := t.Dial(trial.Dialing{})
			c.List("abc")
			c.Open(6)
			t.Stop("b")
			t.Restart("b")
			t.Changed()
			c.Open(2)
		},
	}
}

// healthChecked lets a client ask the servers' health services.
var healthChecked = trial.Dialing{Fields: []string{`"healthCheckConfig":{"serviceName":""}`}}

func healthFlips() trial.Scenario {
	return trial.Scenario{
		Name: "health flips", Change: "a is NOT_SERVING and back three times, 4 more", Hosts: 2,
		Before: trial.At("ab", 4, 4), After: trial.At("ab", 6, 6),
		Play: func(t *trial.Trial) {
			c := t.Dial(healthChecked)
			c.List("ab")
			c.Open(8)
			for range 3 {
				t.SetServing("a", false)
				t.Check()
				t.SetServing("a", true)
			}
			t.Changed()
			c.Open(4)
		},
	}
}

func notServing() trial.Scenario {
	return trial.Scenario{
		Name: "NOT_SERVING", Change: "a is NOT_SERVING while 2 more open, and is back, 6 more", Hosts: 2,
		Before: trial.At("ab", 4, 6), After: trial.At("ab", 8, 8),
		Play: func(t *trial.Trial) {
			c := t.Dial(healthChecked)
			c.List("ab")
			c.Open(8)
			t.SetServing("a", false)
			c.Open(2)
			t.SetServing("a", true)
			t.Changed()
			c.Open(6)
		},
	}
}
