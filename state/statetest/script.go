package statetest

import (
	"errors"
	"fmt"
	"reflect"
	"testing/synctest"

	"github.com/leastconn/grpc-leastconn/state"
)

// script runs operations on a ledger and on the model side by side.
type script struct {
	ledger      *state.Ledger
	model       *model
	ops         []byte
	ticks       int // that may pass
	sets        map[int]*scriptSet
	live        []scriptLease
	released    []state.Lease
	rpcs        []*scriptRPC // that wait, or have
	connections []*scriptConnection
	drains      []scriptDrain // some have ended
	totals      *state.LedgerTotals
}

type scriptSet struct {
	endpointSet *state.EndpointSet
	readySets   []*state.ReadySet
	wake        chan struct{}
	members     map[string]*scriptMember
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
	readySet int // where it was last
	weight   uint32
	value    *scriptValue // what it was last made ready with
}

type scriptValue struct{ addr string }

type scriptLease struct {
	lease state.Lease
	model *lease
	addr  string
	cost  scriptCost // zero without one
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
	s := &script{ledger: state.Open(""), model: newModel(), ops: ops, ticks: 4 * len(ops), sets: map[int]*scriptSet{}}
	s.model.takeUp = s.takeUp
	s.openSet(0)
	for step := 0; len(s.ops) > 0; step++ {
		name, err := s.step()
		if s.model.lost {
			s.abandon()
			return nil
		}
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

func (s *script) check() error {
	if err := s.ledger.Check(); err != nil {
		return err
	}
	for id, r := range s.sets {
		if err := s.checkWake(id, r); err != nil {
			return err
		}
		if err := s.checkDrained(id, r); err != nil {
			return err
		}
		if is := r.endpointSet.Starting(); is != (s.model.sets[id].startup != nil) {
			return fmt.Errorf("endpoint set %d starts up: %t", id, is)
		}
		if len(s.ops)%5 == 0 {
			r.endpointSet.TakeEndpointCounts() // the next check adds up what was taken and what was not
		}
	}
	if err := s.checkConnections(); err != nil {
		return err
	}
	for _, r := range s.rpcs {
		if err := s.checkQueued(r); err != nil {
			return err
		}
	}
	snapshot := s.ledger.Snapshot()
	if again := s.ledger.SnapshotInSteps(); !reflect.DeepEqual(snapshot, again) {
		return fmt.Errorf("the snapshot in steps is %+v, not %+v", again, snapshot)
	}
	s.totals = s.ledger.Totals(s.totals)
	return errors.Join(s.model.Compare(snapshot), compareTotals(snapshot, s.totals.Totals))
}

// checkWake asserts that an endpoint set wakes exactly when RPCs were given room.
func (s *script) checkWake(id int, r *scriptSet) error {
	woken := false
	select {
	case <-r.wake:
		woken = true
	default:
	}
	want := s.model.sets[id].woken
	s.model.sets[id].woken = false
	if woken != want {
		return fmt.Errorf("endpoint set %d has woken RPCs: %t, want %t", id, woken, want)
	}
	return nil
}

// checkQueued asserts where an RPC may leave Pick at once.
func (s *script) checkQueued(r *scriptRPC) error {
	for id, set := range s.sets {
		want := len(r.waiters) == 1 && r.waiters[0].set.id == id && r.waiters[0].phase == queued && !r.waiters[0].doubtful
		if got := set.endpointSet.StillQueued(r.ctx); got != want {
			return fmt.Errorf("an RPC is still queued in endpoint set %d: %t, want %t", id, got, want)
		}
	}
	return nil
}

func (s *script) end() error {
	for id := range s.sets {
		s.closeSet(id)
	}
	for len(s.rpcs) > 0 {
		s.forget(s.rpcs[0])
	}
	for len(s.live) > 0 {
		if err := s.release(0); err != nil {
			return err
		}
	}
	for _, d := range s.drains {
		d.drain.End() // which has ended, since nobody lists its endpoint
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	if n := len(s.ledger.Snapshot().Endpoints); n != 0 {
		return fmt.Errorf("at the end: %d endpoints are left", n)
	}
	return nil
}

// abandon leaves nothing of a script that has failed.
func (s *script) abandon() {
	for _, r := range s.sets {
		r.endpointSet.Close()
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
func (s *script) next(n int) int {
	if len(s.ops) == 0 || n == 0 {
		return 0
	}
	b := s.ops[0]
	s.ops = s.ops[1:]
	return int(b) % n
}

// of reads which of some values an argument is.
func of[T any](s *script, values []T) T { return values[s.next(len(values))] }
