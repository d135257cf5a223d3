package statetest

import (
	"fmt"
	"slices"

	"github.com/leastconn/grpc-leastconn/state"
)

func (s *Script) openRoster(id int) {
	r := s.ledger.NewRoster(fmt.Sprint(id))
	s.rosters[id] = &scriptRoster{
		roster: r, view: r.NewView(0),
		members: map[string]*state.Member{}, weights: map[string]uint32{},
	}
}

func (s *Script) closeRoster(id int) {
	s.rosters[id].roster.Close()
	delete(s.rosters, id)
	delete(s.model.Views, id)
}

func (s *Script) acquire(id int) error {
	best := s.model.Best(id)
	lease, value, ok := s.rosters[id].view.Acquire()
	return s.chosen(best, lease, value, ok)
}

// acquireElsewhere is a retry after attempts that up to k live leases are of.
func (s *Script) acquireElsewhere(id, k int) error {
	var tried state.Tried
	var addrs []string
	for range min(k, len(s.live)) {
		l := s.live[s.next(len(s.live))]
		tried.Add(l.lease)
		addrs = append(addrs, l.addr)
	}
	best := s.model.Best(id, addrs...)
	lease, value, ok := s.rosters[id].view.AcquireElsewhere(&tried)
	return s.chosen(best, lease, value, ok)
}

// chosen compares a choice with those that the model allows.
func (s *Script) chosen(best []string, lease state.Lease, value any, ok bool) error {
	if !ok {
		if len(best) > 0 {
			return fmt.Errorf("nothing was chosen, want one of %q", best)
		}
		return nil
	}
	addr := value.(string)
	if !slices.Contains(best, addr) {
		return fmt.Errorf("%s was chosen, want one of %q; loads %v", addr, best, s.model.Loads)
	}
	s.model.Add(addr, 1)
	s.live = append(s.live, scriptLease{lease, addr})
	return nil
}

func (s *Script) release(i int) error {
	l := s.live[i]
	s.live = slices.Delete(s.live, i, i+1)
	if !l.lease.Release() {
		return fmt.Errorf("a live lease on %s was not given back", l.addr)
	}
	s.released = append(s.released, l.lease)
	s.model.Add(l.addr, -1)
	return nil
}

func (s *Script) add(id, k int) {
	r := s.rosters[id]
	var eps []state.Endpoint
	var addrs []string
	for range k {
		addr := fmt.Sprintf("n%02d", s.next(24))
		if _, ok := r.members[addr]; ok || slices.Contains(addrs, addr) {
			continue
		}
		addrs = append(addrs, addr)
		eps = append(eps, state.Endpoint{Addrs: []string{addr}})
	}
	for i, m := range r.roster.Update(nil, eps) {
		r.members[addrs[i]] = m
		s.set(id, addrs[i], weights[s.next(len(weights))])
	}
}

func (s *Script) remove(r *scriptRoster, id, k int) {
	var leave []*state.Member
	for range k {
		if addr := s.listed(r); addr != "" {
			leave = append(leave, r.members[addr])
			delete(r.members, addr)
			delete(r.weights, addr)
			s.model.Remove(id, addr)
		}
	}
	r.roster.Update(leave, nil)
}

func (s *Script) set(id int, addr string, weight uint32) {
	r := s.rosters[id]
	r.weights[addr] = weight
	r.view.Set(r.members[addr], weight, addr)
	s.model.Set(id, addr, weight)
}

func (s *Script) flap(id int, addr string) {
	r := s.rosters[id]
	if _, ok := s.model.Views[id][addr]; ok {
		r.view.Remove(r.members[addr])
		s.model.Remove(id, addr)
		return
	}
	s.set(id, addr, r.weights[addr])
}

// listed returns one of the addresses that r lists, "" without one.
func (s *Script) listed(r *scriptRoster) string {
	if len(r.members) == 0 {
		return ""
	}
	addrs := make([]string, 0, len(r.members))
	for a := range r.members {
		addrs = append(addrs, a)
	}
	slices.Sort(addrs)
	return addrs[s.next(len(addrs))]
}
