package statetest

import (
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// startupWaits are how long RPCs may wait for members that connect.
var startupWaits = []time.Duration{0, 30 * time.Millisecond, 500 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second}

func (s *script) connecting(id int, addr string, readySet int, weight uint32, wait time.Duration) {
	r := s.sets[id]
	m := r.members[addr]
	m.readySet = readySet
	r.readySets[readySet].SetConnecting(m.Member, weight, time.Now().Add(wait))
	s.model.SetConnecting(id, readySet, addr, weight, s.model.now+wait)
}

// startUp has addresses connect, of which one is ready soon, and RPCs come: new ones, as
// in a first list, or all, as after an outage.
func (s *script) startUp(id int) error {
	addrs := s.join(id, 1+s.next(4))
	if s.next(3) == 0 {
		addrs = s.allListed(id)
	}
	readySet, wait := s.next(levels), of(s, startupWaits)
	for _, addr := range addrs {
		s.connecting(id, addr, readySet, of(s, weights), wait)
	}
	if len(addrs) > 0 {
		s.set(id, of(s, addrs), readySet, 1)
	}
	for range 2 + s.next(6) {
		if err := s.ask(s.newRPC(), id, []int{readySet, (readySet + 1) % levels}, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// reconnect has an address connect again.
func (s *script) reconnect(id int) error {
	if addr := s.listed(id); addr != "" {
		s.connecting(id, addr, s.next(levels), of(s, weights), of(s, startupWaits))
	}
	return nil
}

// connected makes one ready that connects, and most RPCs that wait for it take it up; or
// it fails.
func (s *script) connected(id int) error {
	ms := s.model.sets[id].those(func(mb *member) bool { return mb.connecting.waitedFor })
	if len(ms) == 0 {
		return nil
	}
	mb := of(s, ms)
	addr, reserved := mb.endpoint.addr, slices.Clone(mb.connecting.reserved)
	if s.next(4) == 0 {
		s.unset(id, addr)
		return nil
	}
	s.set(id, addr, mb.connecting.readySet, mb.connecting.weight)
	for _, res := range reserved {
		if s.next(4) > 0 && slices.Contains(mb.connecting.reserved, res) {
			if err := s.attemptIn(s.scriptOf(res.rpc), id, []int{mb.connecting.readySet}); err != nil {
				return err
			}
		}
	}
	return nil
}

// stopOverdue leaves of what is given back at the next tick, since it was not taken up,
// what is on one endpoint: which of several is first would be chance.
func (s *script) stopOverdue() {
	for {
		all := s.model.overdue(s.model.now + state.Tick)
		i := 0
		for i < len(all) && all[i].lease.on == all[0].lease.on {
			i++
		}
		if i == len(all) {
			return
		}
		s.stop(s.scriptOf(all[i].rpc))
	}
}
