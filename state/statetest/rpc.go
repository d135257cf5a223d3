package statetest

import (
	"context"
	"fmt"
	"slices"
	"testing/synctest"

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

func (s *script) serve(id int) error {
	order := of(s, served)
	r := s.sets[id]
	r.endpointSet.SetQueueSets(r.in(order)...)
	s.model.Serve(id, order)
	return nil
}

// publish wakes the RPCs that wait.
func (s *script) publish(id int) error {
	s.sets[id].endpointSet.Published()
	s.model.Publish(id)
	return nil
}

// pick is that of a new RPC, which may be a retry, or one that may not wait.
func (s *script) pick(id int) error {
	order := of(s, orders)
	var tried *state.Tried
	var addrs []string
	if s.next(3) == 0 {
		tried, addrs = s.tried(1 + s.next(3))
	}
	if s.next(8) == 0 {
		return s.ask(&scriptRPC{id: id}, order, tried, addrs)
	}
	r := &scriptRPC{id: id}
	r.ctx, r.end = context.WithCancel(context.Background())
	return s.ask(r, order, tried, addrs)
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

// pickAgain is the pick of an RPC that waits or was granted room.
func (s *script) pickAgain(int) error {
	if len(s.rpcs) == 0 {
		return nil
	}
	return s.ask(of(s, s.rpcs), of(s, orders), nil, nil)
}

// ask has the RPC ask for room.
func (s *script) ask(r *scriptRPC, order []int, tried *state.Tried, addrs []string) error {
	set, model := s.sets[r.id], s.model.sets[r.id]
	if r.waiter != nil {
		r.waiter.seen()
	}
	want := s.model.expect(model, r.waiter, r.ctx != nil, order, addrs)
	lease, value, outcome := set.endpointSet.AcquireOrQueue(r.ctx, tried, set.in(order)...)
	if outcome != want.outcome {
		return fmt.Errorf("outcome %d, want %d", outcome, want.outcome)
	}
	lapsed := r.waiter != nil && slices.Contains(model.lapsed, r.waiter)
	if outcome == state.Queued {
		switch {
		case r.waiter == nil:
			if !want.retry {
				addrs = nil
			}
			r.waiter = s.model.enqueue(model, order, addrs)
			s.rpcs = append(s.rpcs, r)
		case lapsed:
			model.rejoin(r.waiter)
		}
		return nil
	}
	if r.ctx != nil {
		s.forget(r)
	}
	if outcome != state.Chosen {
		return nil
	}
	addr, err := s.hold(r.id, sorted(want.best), lease, value)
	switch {
	case err != nil:
		return err
	case want.granted:
		s.live[len(s.live)-1].start = r.waiter.start
		s.model.used(r.waiter)
		return nil
	case want.retry:
		model.retries++
		s.model.Choose(r.id, want.choice, addr, addrs...)
		return nil
	}
	s.model.Choose(r.id, want.choice, addr)
	if lapsed {
		model.lapsed = without(model.lapsed, r.waiter)
		model.woken = true
	}
	if len(addrs) > 0 { // it has started over, and tried is empty
		return s.ask(&scriptRPC{id: r.id}, order, tried, nil)
	}
	return nil
}

// takeUp has an RPC that was granted room take it up.
func (s *script) takeUp(t *waiter, among []string) (string, error) {
	r := s.rpcOf(t)
	lease, value, outcome := s.sets[r.id].endpointSet.AcquireOrQueue(r.ctx, nil, s.sets[r.id].readySets...)
	if outcome != state.Chosen {
		return "", fmt.Errorf("the RPC that came as number %d is not given room on one of %q", t.arrival, among)
	}
	s.forget(r)
	return s.hold(r.id, among, lease, value)
}

func (s *script) rpcOf(t *waiter) *scriptRPC {
	return s.rpcs[slices.IndexFunc(s.rpcs, func(r *scriptRPC) bool { return r.waiter == t })]
}

// takeUpBut takes up all that RPCs of an endpoint set were granted but what is on one
// endpoint: which of several is given back first would be chance.
func (s *script) takeUpBut(id int) {
	granted := slices.Clone(s.model.sets[id].granted)
	for _, t := range granted {
		if t.on == granted[0].on {
			continue
		}
		if err := s.ask(s.rpcOf(t), orders[0], nil, nil); err != nil {
			s.model.err = err
		}
	}
}

// cancel ends an RPC that waits or was granted room.
func (s *script) cancel(int) error {
	if len(s.rpcs) > 0 {
		r := of(s, s.rpcs)
		s.forget(r)
		synctest.Wait()
		s.model.leave(r.waiter)
	}
	return nil
}

// pause has an RPC that waits or was granted room passed over.
func (s *script) pause(int) error {
	if len(s.rpcs) > 0 {
		r := of(s, s.rpcs)
		state.PauseWaiting(r.ctx, nil)
		s.model.pause(r.waiter)
	}
	return nil
}

// serveElsewhere ends the wait of an RPC that lives on.
func (s *script) serveElsewhere(int) error {
	if len(s.rpcs) > 0 {
		r := of(s, s.rpcs)
		state.StopWaiting(r.ctx)
		s.model.leave(r.waiter)
		s.forget(r)
	}
	return nil
}

// forget ends an RPC's context and its part in the script.
func (s *script) forget(r *scriptRPC) {
	r.end()
	s.rpcs = slices.DeleteFunc(s.rpcs, func(o *scriptRPC) bool { return o == r })
}
