package statetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leastconn/grpc-leastconn/state"
)

// drain keeps new RPCs from an endpoint.
type drain struct{ on *endpoint } // nil once it has ended

// Drain begins one at an address, nil where nobody lists that.
func (m *model) Drain(addr string) *drain {
	defer m.settle()
	n := m.endpoints[addr]
	if n == nil || len(n.members) == 0 {
		return nil
	}
	d := &drain{n}
	n.drains = append(n.drains, d)
	m.updateDrained(n)
	return d
}

// EndDrain ends one, which may have ended.
func (m *model) EndDrain(d *drain) {
	defer m.settle()
	if n := d.on; n != nil {
		d.on = nil
		n.drains = slices.DeleteFunc(n.drains, func(o *drain) bool { return o == d })
		m.updateDrained(n)
	}
}

// endDrains ends those of an endpoint that nobody lists.
func (n *endpoint) endDrains() {
	for _, d := range n.drains {
		d.on = nil
	}
	n.drains = nil
}

func (m *model) updateDrained(n *endpoint) {
	is := len(n.drains) > 0
	var changed []*member
	for _, mb := range n.members {
		if mb.drained == is {
			continue
		}
		mb.drained = is
		if is && mb.readySet == none {
			m.stopConnecting(mb)
		}
		mb.advance(m.now)
		mb.updateEligibility()
		changed = append(changed, mb)
	}
	for _, mb := range changed {
		m.updateConnecting(mb)
		m.revoke(mb)
	}
}

// scriptDrain is one that the script has begun.
type scriptDrain struct {
	drain *state.Drain
	model *drain
}

// drain drains one of the addresses that an endpoint set may list.
func (s *script) drain(id int) error {
	addr := fmt.Sprintf("n%02d", s.next(s.sets[id].addrs))
	d := scriptDrain{s.ledger.Drain(addr), s.model.Drain(addr)}
	if (d.drain == nil) != (d.model == nil) {
		return fmt.Errorf("%s is drained: %t", addr, d.drain != nil)
	}
	if d.drain != nil {
		s.drains = append(s.drains, d)
	}
	return nil
}

// endDrain ends a drain, which may have ended. Some are kept, to be ended once more.
func (s *script) endDrain(int) error {
	if len(s.drains) == 0 {
		return nil
	}
	i := s.next(len(s.drains))
	d := s.drains[i]
	d.drain.End()
	s.model.EndDrain(d.model)
	if s.next(4) > 0 {
		s.drains = slices.Delete(s.drains, i, i+1)
	}
	return nil
}

// checkDrained asserts which of an endpoint set's members are drained.
func (s *script) checkDrained(id int, r *scriptSet) error {
	got := r.endpointSet.Drained()
	for addr, m := range r.members {
		if _, ok := got[m.Member]; ok != s.model.sets[id].members[addr].drained {
			return fmt.Errorf("%s is drained in endpoint set %d: %t", addr, id, ok)
		}
		delete(got, m.Member)
	}
	if len(got) > 0 {
		return errors.New("a member is drained that has left")
	}
	return nil
}

// drain drains an address of sessions, or ends that.
func (s *sessionScript) drain(*sessionSet) error {
	addr := of(s.script, sessionAddrs)
	if d := s.drained[addr]; d != nil {
		d.End()
		delete(s.drained, addr)
	} else if d := s.ledger.Drain(addr); d != nil {
		s.drained[addr] = d
	}
	s.updateDrained()
	return nil
}

// updateDrained brings the members in line with what is drained, which ends where nobody
// lists it.
func (s *sessionScript) updateDrained() {
	listed := map[string]bool{}
	for _, r := range s.sets {
		for addr, m := range r.members {
			listed[addr] = true
			if is := s.drained[addr] != nil; m.drained != is {
				m.drained, m.drawn = is, false
			}
		}
	}
	for addr := range s.drained {
		if !listed[addr] {
			delete(s.drained, addr)
		}
	}
}
