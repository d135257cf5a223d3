package statetest

import (
	"errors"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

func (s *script) openSet(id int) {
	r := &scriptSet{endpointSet: s.ledger.NewEndpointSet(fmt.Sprint(id)), wake: make(chan struct{}, 1), members: map[string]*scriptMember{}}
	for level := range levels {
		r.readySets = append(r.readySets, r.endpointSet.NewReadySet(uint32(level)))
	}
	r.mood = mood{addrs: of(s, []int{2, 3, 4, 6, 18}), limits: of(s, limits)}
	s.sets[id] = r
	s.model.Open(id, levels)
	s.guarded(id, state.Guards{FailurePenalty: time.Second, SlowStart: of(s, starts), MaxQueued: 100})
}

func (s *script) closeSet(id int) {
	s.onOneEndpoint(id)
	s.sets[id].endpointSet.Close()
	s.model.Close(id)
	delete(s.sets, id)
}

func (s *script) closeSome(id int) error {
	if s.next(2) == 0 {
		s.closeSet(id)
	}
	return nil
}

func (s *script) acquire(id int) error {
	readySet := s.next(levels)
	var best []string
	if r := s.model.sets[id]; len(r.waiting())+len(r.granted()) == 0 && r.startup == nil {
		best = sorted(r.best(readySet, withRoom, false, nil))
	}
	lease, value, ok := s.sets[id].readySets[readySet].Acquire()
	if !ok {
		if len(best) > 0 {
			return fmt.Errorf("nothing was chosen, want one of %q", best)
		}
		return nil
	}
	addr := value.(*scriptValue).addr
	if !slices.Contains(best, addr) {
		lease.Release()
		return fmt.Errorf("%s was chosen, want one of %q", addr, best)
	}
	s.hold(lease, value, s.model.Choose(id, choice{readySet: readySet, in: withRoom}, addr))
	return s.checkValue(id, value)
}

// tried returns the endpoints of up to k live leases.
func (s *script) tried(k int) (*state.Tried, []string) {
	t := &state.Tried{}
	var addrs []string
	for range min(k, len(s.live)) {
		l := of(s, s.live)
		t.Add(l.lease)
		addrs = append(addrs, l.addr)
	}
	return t, addrs
}

// hold keeps a lease.
func (s *script) hold(given state.Lease, value any, le *lease) {
	s.live = append(s.live, scriptLease{lease: given, model: le, addr: value.(*scriptValue).addr})
}

// checkValue asserts that a member was chosen with the value that it has now.
func (s *script) checkValue(id int, value any) error {
	v := value.(*scriptValue)
	if m := s.sets[id].members[v.addr]; m == nil || m.value != v {
		return fmt.Errorf("%s was chosen with a value that it had before", v.addr)
	}
	return nil
}

func (s *script) drop(i int) scriptLease {
	l := s.live[i]
	s.live = slices.Delete(s.live, i, i+1)
	s.released = append(s.released, l.lease)
	return l
}

func (s *script) release(i int) error {
	l := s.drop(i)
	if !l.lease.Release() {
		return fmt.Errorf("a live lease on %s was not given back", l.addr)
	}
	s.model.Release(l.model)
	return nil
}

func (s *script) releaseAny(int) error {
	if len(s.live) == 0 {
		return nil
	}
	return s.release(s.next(len(s.live)))
}

// releaseMany releases until few are left.
func (s *script) releaseMany(int) error {
	for few := s.next(8); len(s.live) > few; {
		if err := s.release(len(s.live) - 1); err != nil {
			return err
		}
	}
	return nil
}

// failAny ends one of the latest leases as one that failed.
func (s *script) failAny(int) error {
	if len(s.live) == 0 {
		return nil
	}
	l := s.drop(len(s.live) - 1 - s.next(min(len(s.live), 4)))
	if !l.lease.Fail() {
		return fmt.Errorf("a live lease on %s was not given back", l.addr)
	}
	s.model.Fail(l.model)
	return nil
}

func (s *script) releaseAgain(int) error {
	if len(s.released) > 0 {
		if l := of(s, s.released); l.Release() || l.Fail() {
			return errors.New("it was given back twice")
		}
	}
	return nil
}

var ticks = []int{1, 1, 1, 1, 2, 3, 5, 8, 30, 100, 250}

// pass lets some ticks pass, of those that are left.
func (s *script) pass(int) error {
	k := min(of(s, ticks), s.ticks)
	s.ticks -= k
	for range k {
		s.stopOverdue()
		time.Sleep(state.Tick)
		synctest.Wait()
		s.model.Tick()
		if s.model.unsure {
			if err := s.model.Compare(s.ledger.Snapshot()); err != nil {
				return err
			}
		}
	}
	return nil
}
