package main

import "context"

// scenario is a row of the table: a change of the servers while sessions are open, and sessions that open afterwards.
type scenario struct {
	name   string
	change string // what happens, in a few words
	hosts  int    // how many of the site's hosts take part
	more   int    // how many sessions open after the change
	ageing bool   // needs a host whose connections age
	// prepare opens the first sessions and makes the change.
	prepare func(ctx context.Context, t *trial) error
}

var scenarios = []scenario{
	{name: "scale-out", change: "c joins a and b, 2 more", hosts: 3, more: 2, prepare: scaleOut},
	{name: "one to two", change: "b joins a, 4 more", hosts: 2, more: 4, prepare: oneToTwo},
	{name: "leave and return", change: "a is gone and back, 4 more", hosts: 2, more: 4, prepare: leaveAndReturn},
	{name: "ageing", change: "b joins a, GOAWAY on a, 6 more", hosts: 2, more: 6, ageing: true, prepare: ageing},
}

func scaleOut(ctx context.Context, t *trial) error {
	a, b, c := t.hosts[0], t.hosts[1], t.hosts[2]
	return inOrder(
		func() error { return t.list(ctx, a, b) },
		func() error { return t.open(ctx, 4) },
		func() error { return t.list(ctx, a, b, c) },
	)
}

func oneToTwo(ctx context.Context, t *trial) error {
	a, b := t.hosts[0], t.hosts[1]
	return inOrder(
		func() error { return t.list(ctx, a) },
		func() error { return t.open(ctx, 4) },
		func() error { return t.list(ctx, a, b) },
	)
}

func leaveAndReturn(ctx context.Context, t *trial) error {
	a, b := t.hosts[0], t.hosts[1]
	return inOrder(
		func() error { return t.list(ctx, a, b) },
		func() error { return t.open(ctx, 8) },
		func() error { return t.list(ctx, b) },
		t.ping,
		func() error { return t.list(ctx, a, b) },
	)
}

// ageing has b in place when a's connection ages: a policy that ties its counts to ready connections forgets a's then.
func ageing(ctx context.Context, t *trial) error {
	a, b := t.hosts[0], t.hosts[1]
	return inOrder(
		func() error { return t.list(ctx, a) },
		func() error { return t.open(ctx, 6) },
		func() error { return t.list(ctx, a, b) },
		func() error { return t.age(ctx, a) },
		func() error { return t.list(ctx, a, b) },
	)
}

func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
