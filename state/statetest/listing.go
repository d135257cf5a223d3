package statetest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// weights are those that scripts give: small ones, drain, shares in fixed point
// that differ by a unit, and some that are just near each other or just not.
var weights = []uint32{
	1, 1, 1, 1, 2, 3, 5, 0,
	1 << 30, 1<<30 + 1, 1<<30 - 1, 1<<30 + 1<<14, 715827882, 715827883,
	2040102912, 2040102912 - 31129, 2040102912 + 31129, 2040102912 + 31130,
}

// limits are the caps that the lives of endpoint sets choose from; 0 is none.
var limits = [][]uint32{{0}, {0, 1, 3}, {1}, {1, 2}, {1, 2, 2, 3, 5}, {4, 20}}

// penalties, starts and queues are the guards that scripts give.
var (
	penalties = []time.Duration{0, 15 * time.Millisecond, 50 * time.Millisecond, time.Second, 3 * time.Second}
	starts    = []state.SlowStart{
		{}, {},
		{Window: time.Second, MinWeightPercent: 10, Aggression: 1}, // full from the start
		{Window: 2560 * time.Millisecond, MinWeightPercent: 10, Aggression: 1},
		{Window: 10 * time.Second, MinWeightPercent: 10, Aggression: 1},
		{Window: 7 * time.Second, MinWeightPercent: 50, Aggression: 2},
		{Window: 30 * time.Second, MinWeightPercent: 5, Aggression: 0.5},
		{Window: 10 * time.Minute, MinWeightPercent: 30, Aggression: 1},
	}
	queues = []int{0, 1, 3, 100}
)

func (s *script) guard(id int) error {
	s.guarded(id, state.Guards{FailurePenalty: of(s, penalties), SlowStart: of(s, starts), MaxQueued: of(s, queues)})
	return nil
}

func (s *script) guarded(id int, g state.Guards) {
	r := s.sets[id]
	g.Wake = r.wake
	r.endpointSet.SetGuards(g)
	s.model.Guard(id, g)
}

// add lists some new addresses and makes them ready.
func (s *script) add(id int) error {
	for _, addr := range s.join(id, 1+s.next(4)) {
		s.set(id, addr, s.next(levels), of(s, weights))
	}
	return nil
}

// list lists an address that is not ready.
func (s *script) list(id int) error {
	s.join(id, 1)
	return nil
}

func (s *script) join(id, k int) []string {
	r := s.sets[id]
	var eps []state.Identity
	var addrs []string
	for range k {
		addr := fmt.Sprintf("n%02d", s.next(r.addrs))
		if r.members[addr] == nil && !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
			eps = append(eps, state.Identity{Addrs: []string{addr}})
		}
	}
	for i, m := range r.endpointSet.Update(nil, eps) {
		r.members[addrs[i]] = &scriptMember{Member: m, weight: 1}
		s.model.Add(id, addrs[i])
	}
	s.model.Listed(id)
	for _, addr := range addrs {
		s.capped(id, addr, of(s, r.limits))
	}
	return addrs
}

func (s *script) remove(id int) error {
	r := s.sets[id]
	k := 1 + s.next(3)
	if r := s.model.sets[id]; len(r.granted())+len(r.reservations) > 0 {
		k = 1 // what is revoked may go to one that leaves next
	}
	var leave []*state.Member
	var addrs []string
	for range k {
		if addr := s.listed(id); addr != "" {
			leave = append(leave, r.members[addr].Member)
			addrs = append(addrs, addr)
			delete(r.members, addr)
		}
	}
	r.endpointSet.Update(leave, nil)
	for _, addr := range addrs {
		s.model.Drop(id, addr)
	}
	return nil
}

func (s *script) set(id int, addr string, readySet int, weight uint32) {
	r := s.sets[id]
	m := r.members[addr]
	s.reopen(id, addr)
	m.readySet, m.weight, m.value = readySet, weight, &scriptValue{addr}
	r.readySets[readySet].Set(m.Member, weight, m.value)
	s.model.Set(id, readySet, addr, weight)
}

// change makes an address ready, maybe in the other ready set, maybe with another
// weight.
func (s *script) change(id int) error {
	if addr := s.listed(id); addr != "" {
		m := s.sets[id].members[addr]
		readySet, weight := s.next(levels), of(s, weights)
		if s.next(4) == 0 {
			readySet, weight = m.readySet, m.weight // with another value alone
		}
		s.set(id, addr, readySet, weight)
	}
	return nil
}

func (s *script) flap(id int) error {
	addr := s.listed(id)
	if addr == "" {
		return nil
	}
	m := s.sets[id].members[addr]
	if s.model.sets[id].members[addr].readySet == none {
		s.set(id, addr, m.readySet, m.weight)
		return nil
	}
	s.unset(id, addr)
	return nil
}

func (s *script) unset(id int, addr string) {
	for _, v := range s.sets[id].readySets { // the other one passes it over
		v.Remove(s.sets[id].members[addr].Member)
	}
	s.model.Remove(id, addr)
}

// comeBack makes an address ready after a failure.
func (s *script) comeBack(id int) error {
	if addr := s.listed(id); addr != "" {
		m := s.sets[id].members[addr]
		m.StartSlowly()
		s.model.StartSlowly(id, addr)
		if s.next(4) > 0 {
			s.set(id, addr, m.readySet, m.weight)
		}
	}
	return nil
}

func (s *script) cap(id int) error {
	if addr := s.listed(id); addr != "" {
		s.capped(id, addr, of(s, s.sets[id].limits))
	}
	return nil
}

func (s *script) capped(id int, addr string, limit uint32) {
	s.sets[id].members[addr].SetMaxInFlight(limit)
	s.model.Cap(id, addr, limit)
}

// listed returns one of the addresses that an endpoint set lists, "" without one.
func (s *script) listed(id int) string {
	if len(s.sets[id].members) == 0 {
		return ""
	}
	return of(s, s.allListed(id))
}

func (s *script) allListed(id int) []string { return slices.Sorted(maps.Keys(s.sets[id].members)) }
