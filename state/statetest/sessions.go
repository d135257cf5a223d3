package statetest

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// sessionScript runs operations on sessions of two endpoint sets. Who moves when is
// partly chance, so the script sees who was asked, and asserts what that may be and
// what follows from it.
type sessionScript struct {
	*script  // of which it has the ledger and the bytes
	sets     [2]*sessionSet
	now      time.Duration
	rpcs     []*sessionRPC // live
	moves    []*sessionMove
	snapshot state.Snapshot // after the last step or tick
	planned  map[string]float64
	drained  map[string]*state.Drain
}

type sessionSet struct {
	name        string
	endpointSet *state.EndpointSet
	readySets   []*state.ReadySet
	members     map[string]*sessionMember
}

type sessionMember struct {
	*state.Member
	connection *state.Connection
	readySet   int // or none
	weight     uint32
	drained    bool
	drawn      bool // since it was made ready
}

// sessionRPC is one of a session, or one of none.
type sessionRPC struct {
	set        *sessionSet
	addr       string
	connection *state.Connection
	lease      state.Lease
	session    *state.Session
	moved      <-chan struct{}
	move       *sessionMove // that it was asked for, while that is under way
	cost       *sessionCost // nil: one unit
}

// sessionMove is under way.
type sessionMove struct {
	set     *sessionSet
	session *state.Session
	asked   *sessionRPC
	at      time.Duration
	arrived bool
	place   *sessionMember // that surely has a place for it; else nil
	addr    string         // of the place
	cost    *sessionCost   // that the place has
}

// RunSessions is Run for operations on sessions.
func RunSessions(ops []byte) error {
	s := &sessionScript{script: &script{ledger: state.Open(""), ops: ops, ticks: 4 * len(ops)}, drained: map[string]*state.Drain{}}
	for id := range s.sets {
		s.openSet(id)
	}
	defer s.abandon()
	for step := 0; len(s.ops) > 0; step++ {
		op := of(s.script, sessionWheel)
		err := op.run(s, s.sets[s.next(len(s.sets))])
		if err == nil {
			err = s.check()
		}
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", step, op.name, err)
		}
	}
	return s.end()
}

// end ends all RPCs. The sessions that were asked open no other one, so after a time
// nothing is left of them.
func (s *sessionScript) end() error {
	for len(s.rpcs) > 0 {
		s.release(s.rpcs[0])
	}
	for range 1010 {
		if err := s.tick(); err != nil {
			return fmt.Errorf("at the end: %w", err)
		}
	}
	for _, r := range s.sets {
		r.endpointSet.Close()
	}
	if n := s.ledger.Snapshot(); n.InFlight+n.Moving != 0 || len(n.Endpoints) > 0 || len(s.moves) > 0 {
		return fmt.Errorf("at the end there is %+v, and %d moves", n, len(s.moves))
	}
	return s.ledger.Check()
}

// abandon leaves nothing of a script that has failed.
func (s *sessionScript) abandon() {
	for _, r := range s.sets {
		r.endpointSet.Close()
	}
	for _, r := range s.rpcs {
		r.lease.Release()
	}
}

func (s *sessionScript) openSet(id int) {
	r := &sessionSet{name: fmt.Sprint(id), members: map[string]*sessionMember{}}
	r.endpointSet = s.ledger.NewEndpointSet(r.name)
	for level := range levels {
		r.readySets = append(r.readySets, r.endpointSet.NewReadySet(uint32(level)))
	}
	s.sets[id] = r
	r.endpointSet.SetRebalance(rebalances[0])
}

// rebalances ask for one RPC at most for level loads when a plan is looked at.
var rebalances = []state.Rebalance{
	{PerSecond: 20, DrainWithin: 2 * time.Second}, {PerSecond: 20}, {PerSecond: 5, DrainWithin: 10 * time.Second}, {},
}

// open opens an RPC, of a session unless that is nil, which may have a place.
func (s *sessionScript) open(r *sessionSet, session *state.Session) error {
	rpc := &sessionRPC{set: r, session: session}
	ctx, mv := s.context(rpc), s.moveOf(session)
	lease, value, outcome := r.endpointSet.AcquireOrQueue(ctx, nil, r.readySets...)
	if mv != nil && mv.holds(r) && (outcome != state.Chosen || value != mv.addr) {
		return fmt.Errorf("a session came to %v, outcome %d, and has a place on %s", value, outcome, mv.addr)
	}
	if mv != nil {
		mv.place = nil
	}
	if outcome != state.Chosen {
		return nil
	}
	rpc.addr, rpc.lease = value.(string), lease
	rpc.connection = r.members[rpc.addr].connection
	if mv != nil && !mv.arrived && rpc.cost == nil {
		rpc.cost = mv.cost
	}
	s.rpcs = append(s.rpcs, rpc)
	if mv != nil {
		mv.arrived = true
		if mv.asked == nil {
			s.forget(mv)
		}
	}
	return nil
}

// release ends an RPC.
func (s *sessionScript) release(rpc *sessionRPC) {
	rpc.lease.Release()
	s.rpcs = slices.DeleteFunc(s.rpcs, func(o *sessionRPC) bool { return o == rpc })
	if mv := rpc.move; mv != nil {
		mv.asked = nil
		if mv.arrived {
			s.forget(mv)
		}
	}
}

// forget ends a move.
func (s *sessionScript) forget(mv *sessionMove) {
	if mv.asked != nil {
		mv.asked.move = nil
	}
	s.moves = slices.DeleteFunc(s.moves, func(o *sessionMove) bool { return o == mv })
}

func (s *sessionScript) moveOf(session *state.Session) *sessionMove {
	for _, mv := range s.moves {
		if mv.session == session {
			return mv
		}
	}
	return nil
}

// holds reports whether the place is known, and is to be had through an endpoint set.
func (mv *sessionMove) holds(r *sessionSet) bool {
	return mv.place != nil && mv.set == r && r.members[mv.addr] == mv.place && mv.place.inUse(r)
}

// inUse reports whether RPCs are given to m: it is ready, with a weight, at the level in
// use.
func (m *sessionMember) inUse(r *sessionSet) bool {
	return m.eligible() && m.readySet == r.inUse()
}

func (m *sessionMember) eligible() bool { return m.weight > 0 && !m.drained && m.readySet != none }

// inUse returns the level in use, or none.
func (r *sessionSet) inUse() int {
	best := none
	for _, m := range r.members {
		if m.eligible() && (best == none || m.readySet < best) {
			best = m.readySet
		}
	}
	return best
}

// cannotStay reports whether the RPC may be asked whatever loads are.
func (rpc *sessionRPC) cannotStay() bool {
	m := rpc.set.members[rpc.addr]
	if m == nil || m.connection != rpc.connection || !m.eligible() {
		return true
	}
	return rpc.set.inUse() != none && m.readySet > rpc.set.inUse()
}

// tick lets the time of one tick pass.
func (s *sessionScript) tick() error {
	time.Sleep(state.Tick)
	synctest.Wait()
	s.now += state.Tick
	return s.check()
}
