package statetest

import (
	"slices"
	"testing/synctest"

	"github.com/leastconn/grpc-leastconn/state"
)

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

// cancel ends an RPC that waits or was granted room. Of several waits the first one is
// to end first.
func (s *script) cancel(int) error {
	if len(s.rpcs) == 0 {
		return nil
	}
	r := of(s, s.rpcs)
	if len(r.waiters)+len(r.reservations) > 1 {
		state.StopWaiting(r.ctx)
	}
	s.forget(r)
	synctest.Wait()
	s.model.StopWaiting(r.rpc)
	return nil
}

// pause has an RPC that waits or was granted room passed over, maybe by a picker of the
// endpoint set.
func (s *script) pause(id int) error {
	if len(s.rpcs) == 0 {
		return nil
	}
	r := of(s, s.rpcs)
	if s.next(2) == 0 {
		state.PauseWaiting(r.ctx, nil)
		s.model.Pause(r.rpc, nil)
		return nil
	}
	state.PauseWaiting(r.ctx, s.sets[id].endpointSet)
	s.model.Pause(r.rpc, s.model.sets[id])
	return nil
}

// serveElsewhere ends the waits of an RPC that lives on.
func (s *script) serveElsewhere(int) error {
	if len(s.rpcs) > 0 {
		s.stop(of(s, s.rpcs))
	}
	return nil
}

func (s *script) stop(r *scriptRPC) {
	state.StopWaiting(r.ctx)
	s.model.StopWaiting(r.rpc)
	s.forget(r)
}

// onOneEndpoint leaves of what RPCs of an endpoint set were granted, or have reserved,
// what is on one endpoint: which of several is given back first would be chance.
func (s *script) onOneEndpoint(id int) {
	for {
		r := s.model.sets[id]
		given := r.granted()
		var on []*endpoint
		for _, t := range given {
			on = append(on, t.lease.on)
		}
		for _, res := range r.reservations {
			on = append(on, res.lease.on)
		}
		i := slices.IndexFunc(on, func(n *endpoint) bool { return n != on[0] })
		switch {
		case i < 0:
			return
		case i >= len(given):
			s.stop(s.scriptOf(r.reservations[i-len(given)].rpc))
		default:
			if err := s.ask(s.scriptOf(given[i].rpc), id, orders[0], nil, nil); err != nil {
				s.model.err = err
				return
			}
		}
	}
}
