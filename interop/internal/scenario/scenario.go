// Package scenario plays scenarios with load balancing policies and tells where each policy put its sessions, for programs
// that compare policies.
//
// A session is a bidirectional stream that is held open. A [Scenario] changes servers while sessions are open and opens
// more; [Play] plays it with a [Policy] over real connections to servers, its hosts, and returns an [Outcome]: how many sessions each
// host held before and after, as its server sees them, and each [Placement]. Between a change and the next session a run
// waits until the policy has followed the change. It sees that by sessions that it opens as probes and ends again: so it
// needs no knowledge of the policy, and never takes something as done because time has passed. Of least_conn, it also
// compares the counts with the servers' each time it asks these.
//
// The package links the policies that it names: least_conn, and grpc-go's round_robin and least_request_experimental.
package scenario

// Scenario is a change of the servers while sessions are open, and sessions that open afterwards.
type Scenario struct {
	Name   string
	Change string // what happens, in a few words
	Hosts  int    // how many take part, in the slots from a on
	// Before and After are what exact least-connections gives on hosts named like their slots. Both are the only ones
	// it can give.
	Before, After []Load
	// Play opens the first sessions, makes the change, calls Run.RecordBefore and opens the other sessions.
	Play func(*Run)
}

// Basic returns the scenarios that tell most with the fewest hosts, three.
func Basic() []Scenario {
	return []Scenario{ScaleOut(), OneToTwo(), LeaveAndReturn(), Ageing()}
}

// ScaleOut adds an empty host to two that hold sessions.
func ScaleOut() Scenario {
	return Scenario{
		Name: "scale-out", Change: "c joins a and b, 2 more", Hosts: 3,
		Before: Loads("abc", 2, 2, 0), After: Loads("abc", 2, 2, 2),
		Play: func(r *Run) {
			c := r.Dial(ClientConfig{})
			c.List("ab")
			c.Open(4)
			c.List("abc")
			r.RecordBefore()
			c.Open(2)
		},
	}
}

// OneToTwo adds an empty host to a single one.
func OneToTwo() Scenario {
	return Scenario{
		Name: "one to two", Change: "b joins a, 4 more", Hosts: 2,
		Before: Loads("ab", 4, 0), After: Loads("ab", 4, 4),
		Play: func(r *Run) {
			c := r.Dial(ClientConfig{})
			c.List("a")
			c.Open(4)
			c.List("ab")
			r.RecordBefore()
			c.Open(4)
		},
	}
}

// LeaveAndReturn takes a host out of the list and puts it back while its sessions live on.
func LeaveAndReturn() Scenario {
	return Scenario{
		Name: "leave and return", Change: "a is gone and back, 4 more", Hosts: 2,
		Before: Loads("ab", 4, 4), After: Loads("ab", 6, 6),
		Play: func(r *Run) {
			c := r.Dial(ClientConfig{})
			c.List("ab")
			c.Open(8)
			c.List("b")
			r.Check()
			c.List("ab")
			r.RecordBefore()
			c.Open(4)
		},
	}
}

// Ageing replaces the connection to a host that holds sessions. The other host is in place by then: a policy that ties its
// counts to ready connections forgets the first one's.
func Ageing() Scenario {
	return Scenario{
		Name: "ageing", Change: "b joins a, GOAWAY on a, 6 more", Hosts: 2,
		Before: Loads("ab", 6, 0), After: Loads("ab", 6, 6),
		Play: func(r *Run) {
			c := r.Dial(ClientConfig{})
			c.List("a")
			c.Open(6)
			c.List("ab")
			r.GoAway("a")
			r.RecordBefore()
			c.Open(6)
		},
	}
}
