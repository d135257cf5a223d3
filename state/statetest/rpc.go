package statetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// orders are the ready sets that RPCs try, or are served in.
var orders = [][]int{{0, 1}, {0, 1}, {0}, {1}, {1, 0}}

// served are those that RPCs are served in: sometimes none.
var served = append(slices.Clone(orders), nil)

func (r *scriptSet) in(order []int) []*state.ReadySet {
	var vs []*state.ReadySet
	for _, v := range order {
		vs = append(vs, r.readySets[v])
	}
	return vs
}

// scriptRPC is an RPC that waits, or has and asks again.
type scriptRPC struct {
	ctx context.Context
	end context.CancelFunc
	*rpc
}

// deadlines are how far away those of RPCs are; 0: there is none.
var deadlines = []time.Duration{0, 0, 0, 0, 60 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second}

// deadlineContext has a deadline that does not end it.
type deadlineContext struct {
	context.Context
	at time.Time
}

func (c deadlineContext) Deadline() (time.Time, bool) { return c.at, true }

func (s *script) newRPC() *scriptRPC {
	r := &scriptRPC{rpc: &rpc{}}
	r.ctx, r.end = context.WithCancel(context.Background())
	if d := of(s, deadlines); d > 0 {
		r.ctx, r.deadline = deadlineContext{r.ctx, time.Now().Add(d)}, s.model.now+d
	}
	s.withCost(r)
	s.rpcs = append(s.rpcs, r)
	return r
}

// attempt is the pick of an RPC, which may be a retry.
func (s *script) attempt(r *scriptRPC, id int) error { return s.attemptIn(r, id, of(s, orders)) }

func (s *script) attemptIn(r *scriptRPC, id int, order []int) error {
	if s.next(3) > 0 {
		return s.ask(r, id, order, nil, nil)
	}
	tried, addrs := s.tried(1 + s.next(3))
	return s.ask(r, id, order, tried, addrs)
}

// pick is that of a new RPC, or of one that may not wait.
func (s *script) pick(id int) error {
	if s.next(8) == 0 {
		return s.attempt(&scriptRPC{}, id)
	}
	return s.attempt(s.newRPC(), id)
}

// burst is the picks of several RPCs.
func (s *script) burst(id int) error {
	for range 2 + s.next(6) {
		if err := s.pick(id); err != nil {
			return err
		}
	}
	return nil
}

// pickAgain is the pick of an RPC that waits or was granted room, or has been.
func (s *script) pickAgain(id int) error {
	if len(s.rpcs) == 0 {
		return nil
	}
	r := of(s, s.rpcs)
	if len(r.waiters) > 0 && s.next(4) > 0 {
		id = r.waiters[0].set.id
	} else if len(r.reservations) > 0 && s.next(4) > 0 {
		id = r.reservations[0].member.set.id
	}
	return s.attempt(r, id)
}

// ask has the RPC ask for room in an endpoint set.
func (s *script) ask(r *scriptRPC, id int, order []int, tried *state.Tried, addrs []string) error {
	set := s.sets[id]
	c := call{id: id, rpc: r.rpc, readySets: order, tried: addrs}
	lease, value, outcome := set.endpointSet.AcquireOrQueue(r.ctx, tried, set.in(order)...)
	switch c.outcome = outcome; outcome {
	case state.Chosen:
		c.addr = value.(*scriptValue).addr
	case state.Reserved:
		c.addr = s.newlyReserved()
	}
	a, err := s.model.Acquire(c)
	if outcome != state.Chosen {
		if r.rpc != nil && len(r.waiters)+len(r.reservations) == 0 {
			s.forget(r)
		}
		return err
	}
	if r.rpc != nil {
		s.forget(r)
	}
	s.hold(lease, value, a.lease)
	s.live[len(s.live)-1].cost = r.scriptCost()
	if err = cmp.Or(err, s.checkValue(id, value)); err != nil {
		return err
	}
	if a.startedOver && len(addrs) > 0 { // tried is empty
		return s.ask(&scriptRPC{}, id, order, tried, nil)
	}
	return nil
}

// newlyReserved returns where more RPCs wait than the model knows of.
func (s *script) newlyReserved() string {
	for _, n := range s.ledger.Snapshot().Endpoints {
		if int(n.Reserved) > s.model.endpoints[n.Address()].reserved() {
			return n.Address()
		}
	}
	return ""
}

// takeUp has an RPC that was granted room take it up.
func (s *script) takeUp(t *waiter, among []string) (string, func(*lease), error) {
	r, id := s.scriptOf(t.rpc), t.set.id
	given, value, outcome := s.sets[id].endpointSet.AcquireOrQueue(r.ctx, nil, s.sets[id].readySets...)
	s.forget(r)
	if outcome != state.Chosen || !slices.Contains(among, value.(*scriptValue).addr) {
		return among[0], func(*lease) {}, fmt.Errorf("the RPC that came as number %d is not given room on one of %q", t.arrival, among)
	}
	return value.(*scriptValue).addr, func(le *lease) {
		s.hold(given, value, le)
		s.live[len(s.live)-1].cost = r.scriptCost()
	}, s.checkValue(id, value)
}

func (s *script) scriptOf(q *rpc) *scriptRPC {
	return s.rpcs[slices.IndexFunc(s.rpcs, func(r *scriptRPC) bool { return r.rpc == q })]
}

// forget ends an RPC's context and its part in the script.
func (s *script) forget(r *scriptRPC) {
	r.end()
	s.rpcs = slices.DeleteFunc(s.rpcs, func(o *scriptRPC) bool { return o == r })
}
