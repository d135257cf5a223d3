package main

import "github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"

// turnover is scenarios in which servers leave the list.
func turnover() []trial.Scenario {
	return []trial.Scenario{trial.LeaveAndReturn(), allReturn(), rollingReplacement()}
}

func allReturn() trial.Scenario {
	const first, second = "abcdefghij", "klmnopqrst"
	return trial.Scenario{
		Name: "all gone and back", Change: "a to j give way to k to t and return beside them, 10 more", Hosts: 20,
		Before: trial.At(first+second, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
		After:  trial.At(first+second, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
		Play: func(t *trial.Trial) {
			c := t.Dial(trial.Dialing{})
			c.List(first)
			c.Open(10)
			c.List(second)
			t.Check()
			c.List(first + second)
			t.Changed()
			c.Open(10)
		},
	}
}

func rollingReplacement() trial.Scenario {
	return trial.Scenario{
		Name: "rolling replacement", Change: "d, e and f replace a, b and c in turn, 2 more each time; a, b and c end; 3 more", Hosts: 6,
		Before: trial.At("def", 2, 2, 2), After: trial.At("def", 3, 3, 3),
		Play: func(t *trial.Trial) {
			c := t.Dial(trial.Dialing{})
			c.List("abc")
			c.Open(6)
			for _, list := range []string{"bcd", "cde", "def"} {
				c.List(list)
				t.Check()
				c.Open(2)
			}
			t.End("abc")
			t.Stop("abc")
			t.Changed()
			c.Open(3)
		},
	}
}
