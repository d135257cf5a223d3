package statetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// check takes up who was asked and which moves were given up, and asserts that what the
// ledger says follows from that.
func (s *sessionScript) check() error {
	if err := s.ledger.Check(); err != nil {
		return err
	}
	before := s.planned
	s.snapshot = s.ledger.Snapshot()
	asked := s.askedNow()
	givenUp, err := s.takeUpGivenUp(asked)
	if err != nil {
		return err
	}
	if err := s.takeUpAsks(asked); err != nil {
		return err
	}
	if len(asked) == 1 && givenUp == 0 {
		if err := s.checkAsk(asked[0].move, before); err != nil {
			return err
		}
	}
	for _, mv := range s.moves {
		if !mv.holds(mv.set) {
			mv.place = nil // it may be given back
		}
	}
	s.planned = s.plannedNow()
	return s.checkLoads()
}

// askedNow returns the RPCs that have been asked to move since the last time.
func (s *sessionScript) askedNow() (asked []*sessionRPC) {
	for _, rpc := range s.rpcs {
		select {
		case <-rpc.moved:
			rpc.moved = nil
			asked = append(asked, rpc)
		default:
		}
	}
	return asked
}

// takeUpAsks notes the moves that have begun. A session has one at a time.
func (s *sessionScript) takeUpAsks(asked []*sessionRPC) error {
	for _, rpc := range asked {
		if s.moveOf(rpc.session) != nil {
			return errors.New("a session was asked that moves already")
		}
		rpc.move = &sessionMove{set: rpc.set, session: rpc.session, asked: rpc, at: s.now, cost: rpc.cost}
		s.moves = append(s.moves, rpc.move)
	}
	return nil
}

// takeUpGivenUp returns how many moves were given up: those that take 10 s, the oldest
// first, the next time that plans are looked at. That is soon.
func (s *sessionScript) takeUpGivenUp(asked []*sessionRPC) (givenUp int, err error) {
	for _, rs := range s.snapshot.EndpointSets {
		moving := 0
		var due []*sessionMove
		for _, mv := range s.moves {
			if mv.set.name == rs.Name {
				moving++
				if s.now-mv.at >= 10*time.Second {
					due = append(due, mv)
				}
			}
		}
		for _, rpc := range asked {
			if rpc.set.name == rs.Name {
				moving++
			}
		}
		n := moving - int(rs.Moving)
		if n < 0 || n > len(due) {
			return 0, fmt.Errorf("endpoint set %s: %d streams move, want %d, of which %d may be given up", rs.Name, rs.Moving, moving, len(due))
		}
		for _, mv := range due[:n] {
			s.forget(mv)
		}
		for _, mv := range due[n:] {
			if late := s.now - mv.at - 10*time.Second; late >= 10*state.Tick {
				return 0, fmt.Errorf("endpoint set %s: a move is given up late, by %v", rs.Name, late)
			}
		}
		givenUp += n
	}
	return givenUp, nil
}

// checkLoads asserts the planned load of each endpoint: what is in flight, less what was
// asked to move, with the places that are kept.
func (s *sessionScript) checkLoads() error {
	live, units, leaving, coming := map[string]int64{}, map[string]int64{}, map[string]int64{}, int64(0)
	for _, rpc := range s.rpcs {
		live[rpc.addr]++
		units[rpc.addr] += rpc.cost.now()
	}
	for _, mv := range s.moves {
		if mv.asked != nil {
			leaving[mv.asked.addr]++
		}
		if !mv.arrived {
			coming++
		}
	}
	for _, n := range s.snapshot.Endpoints {
		addr := n.Address()
		if n.InFlight != live[addr]+n.Arriving || n.Leaving != leaving[addr] {
			return fmt.Errorf("%s has %d in flight, of which %d arrive and %d leave, want %d beside those, and %d", addr, n.InFlight, n.Arriving, n.Leaving, live[addr], leaving[addr])
		}
		if n.Units < units[addr]+n.Arriving || n.Arriving == 0 && n.Units != units[addr] {
			return fmt.Errorf("%s has %d units in flight with %d that arrive, want %d beside those", addr, n.Units, n.Arriving, units[addr])
		}
		if coming -= n.Arriving; coming < 0 {
			return fmt.Errorf("more places are kept than sessions are to come: %+v", s.snapshot.Endpoints)
		}
	}
	return nil
}

// plannedNow returns what is planned by endpoint.
func (s *sessionScript) plannedNow() map[string]float64 {
	load := map[string]float64{}
	for _, ep := range s.snapshot.Endpoints {
		load[ep.Address()] = float64(ep.Units)
	}
	for _, mv := range s.moves {
		if mv.asked != nil {
			load[mv.asked.addr] -= float64(mv.asked.cost.now())
		}
	}
	return load
}

// room returns who had room in the endpoint set before a place was taken.
func (r *sessionSet) room(n state.Snapshot, place string) map[string]bool {
	room := map[string]bool{}
	for _, ep := range n.Endpoints {
		for _, m := range ep.Members {
			if m.EndpointSet == r.name {
				room[ep.Address()] = !m.Full || ep.Address() == place && !beyondRoom(ep, m)
			}
		}
	}
	return room
}

// beyondRoom reports whether a member has more than its cap or its server allow.
func beyondRoom(ep state.EndpointSnapshot, m state.MemberSnapshot) bool {
	c := m.Connection
	return m.MaxInFlight > 0 && ep.InFlight > int64(m.MaxInFlight) || c.Limit >= 0 && c.InFlight+c.Others > c.Limit
}

// checkAsk asserts that the only RPC that was asked is to go where the planned share is
// the lowest even then. One that might stay leaves one that is higher than that with the costliest.
// A member that has joined is
// drawn for once: then one above the fair share is left for that, which is below it.
func (s *sessionScript) checkAsk(mv *sessionMove, load map[string]float64) error {
	r, from := mv.set, mv.asked.addr
	units := float64(mv.cost.now())
	now := s.plannedNow()
	now[from] += units
	for addr, m := range r.members {
		if now[addr] == load[addr]+units {
			mv.place, mv.addr = m, addr
		} else if now[addr] != load[addr] {
			return nil // a place was given back, too
		}
	}
	to, room := mv.place, r.room(s.snapshot, mv.addr)
	if to == nil || !to.inUse(r) || !room[mv.addr] {
		return fmt.Errorf("a session of %s was asked to go to %q, which takes none", from, mv.addr)
	}
	cannotStay := mv.asked.cannotStay()
	share := func(addr string, more float64) float64 {
		if cannotStay && addr == from {
			more = 0 // it counts there already
		}
		return (load[addr] + more) / float64(r.members[addr].weight)
	}
	more, sure := units, true
	if !cannotStay {
		more, sure = s.largest()
	}
	all, weights, lower := 0.0, 0.0, ""
	for addr, m := range r.members {
		if !m.inUse(r) {
			continue
		}
		all, weights = all+load[addr], weights+float64(m.weight)
		if room[addr] && share(addr, more) < share(mv.addr, more) {
			lower = addr
		}
	}
	if !sure {
		return nil
	}
	if lower != "" && (cannotStay || more == 1) {
		return fmt.Errorf("a session of %s was asked to go to %s, and %s has less: %v", from, mv.addr, lower, load)
	}
	if cannotStay || lower == "" && share(from, 0) > share(mv.addr, more) {
		return nil
	}
	if fair := all / weights; share(from, 0) > fair && share(mv.addr, 0) < fair && !to.drawn {
		to.drawn = true
		return nil
	}
	return fmt.Errorf("a session was asked to go from %s to %s for nothing: %v", from, mv.addr, load)
}
