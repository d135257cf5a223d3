package statetest

import (
	"fmt"

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
