package statetest

import (
	"fmt"
	"slices"

	"github.com/leastconn/grpc-leastconn/state"
)

// weights are those that scripts give: small ones, drain, shares in fixed point
// that differ by a unit, and some that are just near each other or just not.
var weights = []uint32{
	1, 1, 1, 1, 2, 3, 5, 0,
	1 << 30, 1<<30 + 1, 1<<30 - 1, 1<<30 + 1<<14, 715827882, 715827883,
	2040102912, 2040102912 - 31129, 2040102912 + 31129, 2040102912 + 31130,
}

// Script runs operations on a ledger and on the model side by side.
type Script struct {
	ledger   *state.Ledger
	model    *Model
	ops      []byte
	rosters  map[int]*scriptRoster
	live     []scriptLease
	released []state.Lease
}

type scriptRoster struct {
	roster  *state.Roster
	view    *state.View
	members map[string]*state.Member
	weights map[string]uint32
}

type scriptLease struct {
	lease state.Lease
	addr  string
}

// Run reads ops as a script: each step takes one byte for the operation and a
// few for its arguments. After every step the ledger's invariants and its counts
// are checked, and every choice must be one that the model allows. At the end
// all leases are given back and all rosters closed. It returns what failed
// first, with the step.
func Run(ops []byte) error {
	s := &Script{ledger: state.Open(""), model: NewModel(), ops: ops, rosters: map[int]*scriptRoster{}}
	s.openRoster(0)
	for step := 0; len(s.ops) > 0; step++ {
		name, err := s.step()
		if err == nil {
			err = s.check()
		}
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", step, name, err)
		}
	}
	return s.end()
}

func (s *Script) check() error {
	if err := s.ledger.Check(); err != nil {
		return err
	}
	return s.model.Compare(s.ledger.Snapshot())
}

func (s *Script) end() error {
	for id := range s.rosters {
		s.closeRoster(id)
	}
	for len(s.live) > 0 {
		if err := s.release(0); err != nil {
			return err
		}
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	if n := len(s.ledger.Snapshot().Nodes); n != 0 {
		return fmt.Errorf("at the end: %d nodes are left", n)
	}
	return nil
}

// next reads an argument below n.
func (s *Script) next(n int) int {
	if len(s.ops) == 0 || n == 0 {
		return 0
	}
	b := s.ops[0]
	s.ops = s.ops[1:]
	return int(b) % n
}

func (s *Script) step() (string, error) {
	op := s.next(16)
	id := s.next(3)
	r := s.rosters[id]
	switch {
	case r == nil:
		s.openRoster(id)
		return "open view", nil
	case op < 4:
		return "acquire", s.acquire(id)
	case op == 4:
		return "acquire elsewhere", s.acquireElsewhere(id, s.next(4))
	case op < 8:
		if len(s.live) == 0 {
			return "release", nil
		}
		return "release", s.release(s.next(len(s.live)))
	case op == 8:
		if len(s.released) > 0 && s.released[s.next(len(s.released))].Release() {
			return "release again", fmt.Errorf("it was given back twice")
		}
		return "release again", nil
	case op < 11:
		s.add(id, 1+s.next(4))
		return "add", nil
	case op == 11:
		s.remove(r, id, 1+s.next(3))
		return "remove", nil
	case op < 14:
		if addr := s.listed(r); addr != "" {
			s.set(id, addr, weights[s.next(len(weights))])
		}
		return "change weight", nil
	case op == 14:
		if addr := s.listed(r); addr != "" {
			s.flap(id, addr)
		}
		return "flap", nil
	case s.next(4) == 0:
		s.closeRoster(id)
		return "close view", nil
	}
	return "nothing", nil
}

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
