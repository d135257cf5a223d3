package statetest

import (
	"context"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// Script runs operations on a ledger and on the model side by side.
type Script struct {
	ledger   *state.Ledger
	model    *Model
	ops      []byte
	ticks    int // that may pass
	rosters  map[int]*scriptRoster
	live     []scriptLease
	released []state.Lease
	rpcs     []*scriptRPC // that have a ticket
}

type scriptRoster struct {
	roster  *state.EndpointSet
	views   []*state.ReadySet
	wake    chan struct{}
	penalty time.Duration
	members map[string]*scriptMember
	mood
}

// mood is what makes one life of an endpoint set unlike another: how many addresses it
// may list, and the caps of new ones.
type mood struct {
	addrs  int
	limits []uint32
}

type scriptMember struct {
	*state.Member
	view   int // where it was last
	weight uint32
	value  *scriptValue // what it was last made ready with
}

type scriptValue struct{ addr string }

type scriptLease struct {
	lease  state.Lease
	addr   string
	id     int // of the endpoint set
	roster *scriptRoster
	start  time.Duration
}

// scriptRPC is an RPC that waits or was granted room.
type scriptRPC struct {
	ctx    context.Context
	end    context.CancelFunc
	id     int
	ticket *ticket
}

// levels is the number of ready sets of each endpoint set.
const levels = 2

// Run reads ops as a script: each step takes one byte for the operation and a
// few for its arguments. After every step the ledger's invariants and its
// snapshot are checked, and every choice must be one that the model allows. At
// the end all leases are given back and all endpoint sets closed. It returns what
// failed first, with the step. It must be called in a bubble of testing/synctest,
// whose time it lets pass.
func Run(ops []byte) error {
	s := &Script{ledger: state.Open(""), model: NewModel(), ops: ops, ticks: 4 * len(ops), rosters: map[int]*scriptRoster{}}
	s.model.takeUp = s.takeUp
	s.openRoster(0)
	for step := 0; len(s.ops) > 0; step++ {
		name, err := s.step()
		if err == nil {
			err = s.check()
		}
		if err != nil {
			s.abandon()
			return fmt.Errorf("step %d, %s: %w", step, name, err)
		}
	}
	return s.end()
}

func (s *Script) check() error {
	if err := s.ledger.Check(); err != nil {
		return err
	}
	for id, r := range s.rosters {
		if err := s.checkWake(id, r); err != nil {
			return err
		}
	}
	return s.model.Compare(s.ledger.Snapshot())
}

// checkWake asserts that an endpoint set wakes exactly when RPCs were given room.
func (s *Script) checkWake(id int, r *scriptRoster) error {
	woken := false
	select {
	case <-r.wake:
		woken = true
	default:
	}
	want := s.model.rosters[id].woken
	s.model.rosters[id].woken = false
	if woken != want {
		return fmt.Errorf("roster %d has woken RPCs: %t, want %t", id, woken, want)
	}
	return nil
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
	if n := len(s.ledger.Snapshot().Endpoints); n != 0 {
		return fmt.Errorf("at the end: %d nodes are left", n)
	}
	return nil
}

// abandon leaves nothing of a script that has failed.
func (s *Script) abandon() {
	for _, r := range s.rosters {
		r.roster.Close()
	}
	for _, r := range s.rpcs {
		r.end()
	}
	for _, l := range s.live {
		l.lease.Release()
	}
	synctest.Wait()
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

// of reads which of some values an argument is.
func of[T any](s *Script, values []T) T { return values[s.next(len(values))] }

// operation is one kind of step. It is for an endpoint set that is open.
type operation struct {
	name string
	odds int
	run  func(s *Script, id int) error
}

var operations = []operation{
	{"acquire", 7, (*Script).acquire},
	{"acquire elsewhere", 2, (*Script).acquireElsewhere},
	{"turn", 6, (*Script).turn},
	{"crowd", 4, (*Script).crowd},
	{"turn again", 5, (*Script).turnAgain},
	{"cancel", 2, (*Script).cancel},
	{"release", 7, (*Script).releaseAny},
	{"release many", 1, (*Script).releaseMany},
	{"fail", 4, (*Script).failAny},
	{"release again", 1, (*Script).releaseAgain},
	{"add", 4, (*Script).add},
	{"list", 1, (*Script).list},
	{"remove", 1, (*Script).remove},
	{"set", 2, (*Script).change},
	{"flap", 2, (*Script).flap},
	{"come back", 1, (*Script).comeBack},
	{"cap", 3, (*Script).cap},
	{"guard", 1, (*Script).guard},
	{"serve", 1, (*Script).serve},
	{"pass", 4, (*Script).pass},
	{"close", 1, (*Script).closeSome},
}

// wheel has each operation as often as its odds.
var wheel = func() (all []operation) {
	for _, op := range operations {
		all = append(all, slices.Repeat([]operation{op}, op.odds)...)
	}
	return all
}()

func (s *Script) step() (string, error) {
	op := of(s, wheel)
	id := s.next(3)
	if s.rosters[id] == nil {
		s.openRoster(id)
		return "open", nil
	}
	return op.name, op.run(s, id)
}
