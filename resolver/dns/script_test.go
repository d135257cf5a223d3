package dns

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"
)

// list makes an answer of addresses.
func found(addrs ...string) answer {
	var a answer
	for _, addr := range addrs {
		a.endpoints = append(a.endpoints, endpoint{addr: netip.MustParseAddrPort(addr)})
	}
	a.complete = true
	return a
}

func failed(text string) answer { return answer{err: errors.New(text)} }

// script is a lookup whose answers are given beforehand; the last one stays.
type scriptedLookup struct {
	answers []answer
	takes   time.Duration
	running atomic.Int32

	mu             sync.Mutex
	started, ended []time.Time
}

func (s *scriptedLookup) lookup(ctx context.Context) answer {
	if s.running.Add(1) > 1 {
		panic("lookups overlap")
	}
	defer s.running.Add(-1)
	s.note(&s.started)
	time.Sleep(s.takes)
	s.note(&s.ended)
	a := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	return a
}

func (s *scriptedLookup) note(times *[]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*times = append(*times, time.Now())
}

// count returns how many lookups there were, once nothing more happens now.
func (s *scriptedLookup) count() int {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.started)
}

// pauses returns the times between lookups.
func (s *scriptedLookup) pauses() (ds []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, started := range s.started[1:] {
		ds = append(ds, started.Sub(s.ended[i]))
	}
	return ds
}
