package statetest

import (
	"context"
	"math"
	"slices"

	"github.com/leastconn/grpc-leastconn/state"
)

// sessionOperation is one kind of step, for one of the endpoint sets.
type sessionOperation struct {
	name string
	odds int
	run  func(s *sessionScript, r *sessionSet) error
}

var sessionOperations = []sessionOperation{
	{"begin", 8, (*sessionScript).begin},
	{"open another", 1, (*sessionScript).another},
	{"pick", 3, func(s *sessionScript, r *sessionSet) error { return s.open(r, nil) }},
	{"end", 3, (*sessionScript).endAny},
	{"set cost", 3, (*sessionScript).setCost},
	{"answer", 12, (*sessionScript).answer},
	{"give up", 1, (*sessionScript).giveUp},
	{"ready", 6, (*sessionScript).ready},
	{"not ready", 1, (*sessionScript).notReady},
	{"go away", 1, (*sessionScript).goAway},
	{"drain", 1, (*sessionScript).drain},
	{"cap", 1, (*sessionScript).cap},
	{"limit", 3, (*sessionScript).limit},
	{"leave", 1, (*sessionScript).leave},
	{"rebalance", 1, (*sessionScript).rebalance},
	{"close", 1, (*sessionScript).closeSome},
	{"pass", 12, (*sessionScript).pass},
}

// sessionWheel has each operation as often as its odds.
var sessionWheel = func() (all []sessionOperation) {
	for _, op := range sessionOperations {
		all = append(all, slices.Repeat([]sessionOperation{op}, op.odds)...)
	}
	return all
}()

// context returns that of the RPC, which has a mark if it is a session's, and may have a
// cost.
func (s *sessionScript) context(rpc *sessionRPC) (ctx context.Context) {
	ctx = s.withCost(context.Background(), rpc)
	if rpc.session != nil {
		ctx, rpc.moved = rpc.session.Next(ctx)
	}
	return ctx
}

func (s *sessionScript) begin(r *sessionSet) error {
	for range min(1+s.next(8), 50-len(s.rpcs)) {
		if err := s.open(r, &state.Session{}); err != nil {
			return err
		}
	}
	return nil
}

// another opens one more RPC of a session that has one, asked or not.
func (s *sessionScript) another(r *sessionSet) error {
	if len(s.rpcs) == 0 {
		return nil
	}
	return s.open(r, of(s.script, s.rpcs).session)
}

func (s *sessionScript) endAny(*sessionSet) error {
	if len(s.rpcs) > 0 {
		s.release(of(s.script, s.rpcs))
	}
	return nil
}

// answer has some sessions move that were asked to, each in its way.
func (s *sessionScript) answer(*sessionSet) error {
	for range 1 + s.next(4) {
		if len(s.moves) == 0 {
			return nil
		}
		mv := of(s.script, s.moves)
		asked, first := mv.asked, s.next(2) == 0
		if asked != nil && first {
			s.release(asked)
		}
		if !mv.arrived {
			if err := s.open(mv.set, mv.session); err != nil {
				return err
			}
		}
		if asked != nil && !first {
			s.release(asked)
		}
	}
	return nil
}

// giveUp ends an RPC that was asked.
func (s *sessionScript) giveUp(*sessionSet) error {
	if len(s.moves) > 0 {
		if rpc := of(s.script, s.moves).asked; rpc != nil {
			s.release(rpc)
		}
	}
	return nil
}

var sessionAddrs = []string{"a", "b", "c", "d", "e"}

// member returns one of the endpoint set's, nil without one. It has its address.
func (s *sessionScript) member(r *sessionSet) (string, *sessionMember) {
	addr := of(s.script, sessionAddrs)
	return addr, r.members[addr]
}

// ready lists an endpoint, if it is not, and makes it ready.
func (s *sessionScript) ready(r *sessionSet) error {
	addr, m := s.member(r)
	if m == nil {
		joined := r.endpointSet.Update(nil, []state.Identity{{Addrs: []string{addr}}})
		m = &sessionMember{Member: joined[0], connection: joined[0].NewConnection()}
		r.members[addr] = m
	}
	m.readySet, m.weight = of(s.script, []int{0, 0, 0, 1}), of(s.script, []uint32{0, 1, 1, 1, 1, 2, 3})
	m.drawn = false
	s.updateDrained()
	r.readySets[m.readySet].Set(m.Member, m.weight, addr)
	return nil
}

func (s *sessionScript) notReady(r *sessionSet) error {
	if _, m := s.member(r); m != nil && m.readySet != none {
		r.readySets[m.readySet].Remove(m.Member)
		m.readySet, m.weight = none, 0
	}
	return nil
}

// goAway has the server of a member close its connection, and another one made.
func (s *sessionScript) goAway(r *sessionSet) error {
	if _, m := s.member(r); m != nil {
		m.connection.End()
		m.connection = m.NewConnection()
	}
	return nil
}

func (s *sessionScript) cap(r *sessionSet) error {
	if _, m := s.member(r); m != nil {
		m.SetMaxInFlight(of(s.script, []uint32{0, 0, 1, 3, 10}))
	}
	return nil
}

// limit has the server of a member say how many streams it takes. A place there is kept on if
// its connection is still the one that it was kept on, which nobody here knows.
func (s *sessionScript) limit(r *sessionSet) error {
	_, m := s.member(r)
	if m == nil {
		return nil
	}
	m.connection.SetLimit(of(s.script, []uint32{math.MaxUint32, 0, 1, 3, 10}))
	for _, mv := range s.moves {
		if mv.place == m {
			mv.place = nil
		}
	}
	return nil
}

func (s *sessionScript) leave(r *sessionSet) error {
	if addr, m := s.member(r); m != nil {
		r.endpointSet.Update([]*state.Member{m.Member}, nil)
		delete(r.members, addr)
		s.updateDrained()
	}
	return nil
}

func (s *sessionScript) rebalance(r *sessionSet) error {
	r.endpointSet.SetRebalance(of(s.script, rebalances))
	return nil
}

// closeSome closes an endpoint set and opens another one. RPCs live on.
func (s *sessionScript) closeSome(r *sessionSet) error {
	if s.next(4) > 0 {
		return nil
	}
	r.endpointSet.Close()
	clear(r.members)
	s.updateDrained()
	for _, mv := range slices.Clone(s.moves) {
		if mv.set == r {
			s.forget(mv)
		}
	}
	s.openSet(slices.Index(s.sets[:], r))
	return nil
}

func (s *sessionScript) pass(*sessionSet) error {
	k := min(of(s.script, []int{1, 5, 10, 20, 50, 100, 500, 600, 1100}), s.ticks)
	s.ticks -= k
	for range k {
		if err := s.tick(); err != nil {
			return err
		}
	}
	return nil
}
