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

func (r *scriptRoster) in(order []int) []*state.ReadySet {
	var vs []*state.ReadySet
	for _, v := range order {
		vs = append(vs, r.views[v])
	}
	return vs
}

func (s *Script) serve(id int) error {
	order := of(s, orders)
	r := s.rosters[id]
	r.roster.SetQueueSets(r.in(order)...)
	s.model.Serve(id, order)
	return nil
}

// turn is the pick of a new RPC, which may be a retry, or one that may not wait.
func (s *Script) turn(id int) error {
	order := of(s, orders)
	var tried *state.Tried
	var addrs []string
	if s.next(3) == 0 {
		tried, addrs = s.tried(1 + s.next(3))
	}
	if s.next(8) == 0 {
		return s.take(&scriptRPC{id: id}, order, tried, addrs)
	}
	r := &scriptRPC{id: id}
	r.ctx, r.end = context.WithCancel(context.Background())
	return s.take(r, order, tried, addrs)
}

// crowd is the picks of several RPCs.
func (s *Script) crowd(id int) error {
	for range 2 + s.next(6) {
		if err := s.turn(id); err != nil {
			return err
		}
	}
	return nil
}

// turnAgain is the pick of an RPC that has a ticket.
func (s *Script) turnAgain(int) error {
	if len(s.rpcs) == 0 {
		return nil
	}
	return s.take(of(s, s.rpcs), of(s, orders), nil, nil)
}

// take has the RPC ask for its turn.
func (s *Script) take(r *scriptRPC, order []int, tried *state.Tried, addrs []string) error {
	roster, model := s.rosters[r.id], s.model.rosters[r.id]
	want := s.model.turn(model, r.ticket, r.ctx != nil, order, addrs)
	lease, value, outcome := roster.roster.AcquireOrQueue(r.ctx, tried, roster.in(order)...)
	if outcome != want.outcome {
		return fmt.Errorf("outcome %d, want %d", outcome, want.outcome)
	}
	if outcome == state.Queued && r.ticket == nil {
		r.ticket = s.model.enqueue(model, order)
		s.rpcs = append(s.rpcs, r)
		return nil
	}
	if outcome != state.Queued && r.ctx != nil {
		s.forget(r)
	}
	if outcome != state.Chosen {
		return nil
	}
	addr, err := s.hold(r.id, sorted(want.among), lease, value)
	switch {
	case err != nil:
		return err
	case want.granted:
		s.live[len(s.live)-1].start = r.ticket.start
		s.model.used(r.ticket)
		return nil
	case want.elsewhere:
		model.elsewhere++
		s.model.Choose(r.id, want.view, addr, addrs...)
		return nil
	case tried != nil && !tried.Empty():
		return fmt.Errorf("it started over on %s and still knows what it tried", addr)
	}
	s.model.Choose(r.id, want.view, addr)
	return nil
}

// takeUp has an RPC that was granted room take it up.
func (s *Script) takeUp(t *ticket, among []string) (string, error) {
	r := s.rpcOf(t)
	lease, value, outcome := s.rosters[r.id].roster.AcquireOrQueue(r.ctx, nil, s.rosters[r.id].views...)
	if outcome != state.Chosen {
		return "", fmt.Errorf("the RPC that came as number %d is not given room on one of %q", t.arrival, among)
	}
	s.forget(r)
	return s.hold(r.id, among, lease, value)
}

func (s *Script) rpcOf(t *ticket) *scriptRPC {
	return s.rpcs[slices.IndexFunc(s.rpcs, func(r *scriptRPC) bool { return r.ticket == t })]
}

// takeUpBut takes up all that RPCs of an endpoint set were granted but what is on one
// endpoint: which of several is given back first would be chance.
func (s *Script) takeUpBut(id int) {
	granted := slices.Clone(s.model.rosters[id].granted)
	for _, t := range granted {
		if t.on == granted[0].on {
			continue
		}
		if err := s.take(s.rpcOf(t), orders[0], nil, nil); err != nil {
			s.model.err = err
		}
	}
}

// cancel ends an RPC that has a ticket.
func (s *Script) cancel(int) error {
	if len(s.rpcs) > 0 {
		r := of(s, s.rpcs)
		s.forget(r)
		synctest.Wait()
		s.model.leave(r.ticket)
	}
	return nil
}

// forget ends an RPC's context and its part in the script.
func (s *Script) forget(r *scriptRPC) {
	r.end()
	s.rpcs = slices.DeleteFunc(s.rpcs, func(o *scriptRPC) bool { return o == r })
}
