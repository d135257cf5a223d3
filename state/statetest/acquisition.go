package statetest

import (
	"fmt"
	"slices"

	"github.com/leastconn/grpc-leastconn/state"
)

// call is one of EndpointSet.AcquireOrQueue, with what it has come to.
type call struct {
	id        int
	rpc       *rpc // nil: it may not wait
	readySets []int
	tried     []string
	outcome   state.Outcome
	addr      string // that is chosen, or reserved anew
}

// acquisition is a call as the model makes it.
type acquisition struct {
	call
	model       *model
	set         *endpointSet
	lease       *lease // when it is chosen
	startedOver bool
	err         error
}

// Acquire makes a call. It fails when the call may not have come to what it has.
func (m *model) Acquire(c call) (*acquisition, error) {
	defer m.settle()
	a := &acquisition{call: c, model: m, set: m.sets[c.id]}
	m.asking = a
	outcome := a.acquire()
	m.asking = nil
	if a.lease != nil && c.rpc != nil {
		a.lease.bind(c.rpc.cost)
	}
	switch {
	case a.err != nil:
	case outcome != c.outcome:
		a.err = fmt.Errorf("outcome %d, want %d", c.outcome, outcome)
	case c.rpc == nil:
	case outcome == state.Chosen:
		m.served = slices.Insert(m.served, 0, c.rpc)
	default:
		m.passOn(c.rpc, a.set)
	}
	return a, a.err
}

// among returns the address that the call has come to, which must be one of some.
func (a *acquisition) among(outcome state.Outcome, addrs []string) string {
	if a.outcome == outcome && slices.Contains(addrs, a.addr) {
		return a.addr
	}
	if a.err == nil {
		a.err = fmt.Errorf("outcome %d with %q, want %d with one of %q", a.outcome, a.addr, outcome, addrs)
	}
	return addrs[0]
}

func (a *acquisition) acquire() state.Outcome {
	r := a.set
	if t := r.waiterOf(a.rpc); t != nil {
		return a.waitOn(t)
	}
	if r.startup != nil {
		if outcome := a.reserved(); outcome != state.Empty {
			return outcome
		}
	}
	full := a.choose()
	startedOver := a.startedOver
	if a.lease != nil {
		return state.Chosen
	}
	a.startedOver = false
	switch {
	case !full:
		return state.Empty
	case !a.mayWait() && a.chooseNoRoom():
		a.startedOver = startedOver
		return state.Chosen
	case !a.mayWait():
		return state.Refused
	}
	a.serving()
	a.model.enqueue(r, a.rpc, a.tried).startedOver = startedOver
	return state.Queued
}

// waitOn is for an RPC that waits already.
func (a *acquisition) waitOn(t *waiter) state.Outcome {
	t.seen()
	if t.phase == lapsed {
		tried := a.tried
		if a.set.guards.FailurePenalty == 0 {
			tried = nil
		}
		a.model.rejoin(t, tried)
		a.model.setPatience(t)
	}
	if t.phase != granted {
		return state.Queued
	}
	a.among(state.Chosen, []string{t.lease.on.addr})
	a.startedOver = t.startedOver
	a.lease = a.model.used(t)
	return state.Chosen
}

func (a *acquisition) mayWait() bool {
	return a.rpc != nil && len(a.set.waiting()) < a.set.guards.MaxQueued
}

// choose chooses for an RPC that does not wait. It reports whether caps are in the way.
func (a *acquisition) choose() (full bool) {
	r := a.set
	if len(a.tried) > 0 {
		if chosen, _ := a.chooseIn(a.readySets); chosen {
			r.retries++
			return true
		}
		if chosen, _ := a.chooseIn(r.queueSets); chosen {
			r.retries++
			return true
		}
		if a.mayWait() && r.guards.FailurePenalty > 0 && r.othersReady(a.serving(), a.tried) {
			return true
		}
		a.startedOver = true
	}
	a.tried = nil
	chosen, full := a.chooseIn(a.readySets)
	if !chosen && full {
		a.chooseIn(r.queueSets)
	}
	return full
}

// chooseNoRoom chooses, for an RPC that may not wait, one whose connection has no room, or
// lacks it by penalties.
func (a *acquisition) chooseNoRoom() bool {
	c, except := a.set.bestNoRoom(slices.Concat(a.readySets, a.set.queueSets))
	if len(c.best) > 0 {
		a.lease = a.model.Choose(a.id, c, a.among(state.Chosen, sorted(c.best)), except...)
	}
	return a.lease != nil
}

// serving returns where there may be room for RPCs that wait.
func (a *acquisition) serving() []int {
	r := a.set
	if !r.told && r.queueSets == nil {
		r.queueSets = a.readySets
	}
	return r.queueSets
}

func (a *acquisition) chooseIn(readySets []int) (chosen, full bool) {
	c, full := a.set.bestIn(readySets, false, a.tried)
	if len(c.best) == 0 {
		return false, full
	}
	addr := a.among(state.Chosen, sorted(c.best))
	a.lease = a.model.Choose(a.id, c, addr, a.tried...)
	return true, full
}
