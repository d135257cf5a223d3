package trial

// Scenario is a change of the servers while sessions are open, and sessions that open afterwards.
type Scenario struct {
	Name   string
	Change string // what happens, in a few words
	Hosts  int    // how many take part, in the slots from a on
	Ages   bool   // needs a host in slot a whose connections age
	// Before and After are what exact least-connections gives on hosts named like their slots. Both are the only ones
	// it can give.
	Before, After []Load
	// Play opens the first sessions, makes the change, calls Trial.Changed and opens the other sessions.
	Play func(*Trial)
}

// Basics returns the scenarios that tell most with the fewest hosts, three.
func Basics() []Scenario {
	return []Scenario{ScaleOut(), OneToTwo(), LeaveAndReturn(), Ageing()}
}

// ScaleOut adds an empty host to two that hold sessions.
func ScaleOut() Scenario {
	return Scenario{
		Name: "scale-out", Change: "c joins a and b, 2 more", Hosts: 3,
		Before: At("abc", 2, 2, 0), After: At("abc", 2, 2, 2),
		Play: func(t *Trial) {
			c := t.Dial(Dialing{})
			c.List("ab")
			c.Open(4)
			c.List("abc")
			t.Changed()
			c.Open(2)
		},
	}
}

// OneToTwo adds an empty host to a single one.
func OneToTwo() Scenario {
	return Scenario{
		Name: "one to two", Change: "b joins a, 4 more", Hosts: 2,
		Before: At("ab", 4, 0), After: At("ab", 4, 4),
		Play: func(t *Trial) {
			c := t.Dial(Dialing{})
			c.List("a")
			c.Open(4)
			c.List("ab")
			t.Changed()
			c.Open(4)
		},
	}
}

// LeaveAndReturn takes a host out of the list and puts it back while its sessions live on.
func LeaveAndReturn() Scenario {
	return Scenario{
		Name: "leave and return", Change: "a is gone and back, 4 more", Hosts: 2,
		Before: At("ab", 4, 4), After: At("ab", 6, 6),
		Play: func(t *Trial) {
			c := t.Dial(Dialing{})
			c.List("ab")
			c.Open(8)
			c.List("b")
			t.Check()
			c.List("ab")
			t.Changed()
			c.Open(4)
		},
	}
}

// Ageing replaces the connection to a host that holds sessions. The other host is in place by then: a policy that ties its
// counts to ready connections forgets the first one's.
func Ageing() Scenario {
	return Scenario{
		Name: "ageing", Change: "b joins a, GOAWAY on a, 6 more", Hosts: 2, Ages: true,
		Before: At("ab", 6, 0), After: At("ab", 6, 6),
		Play: func(t *Trial) {
			c := t.Dial(Dialing{})
			c.List("a")
			c.Open(6)
			c.List("ab")
			t.GoAway("a")
			t.Changed()
			c.Open(6)
		},
	}
}
