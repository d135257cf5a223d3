package main

import (
	"context"
	"fmt"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/state"
)

const (
	sampleEach = 10 * time.Millisecond
	lowEach    = 10 // one sample in so many is looked at again for what is too low
)

// sampler compares the ledgers with the attempts all along.
type sampler struct {
	env      *env
	attempts *attempts
	report   *report
	pending  []sample // until all ends that belong to them have been told
	taken    int
}

// violation is something that must not be, with the ledgers as they were.
type violation struct {
	what      error
	snapshots []leastconnbalancer.Snapshot
}

// Error says what must not be.
func (v *violation) Error() string { return v.what.Error() }

// Unwrap returns what must not be.
func (v *violation) Unwrap() error { return v.what }

// violated returns what as a violation with the ledgers as they are now.
func violated(what error) error { return &violation{what, leastconnbalancer.Snapshots()} }

// run samples until ctx ends; a violation is returned at once.
func (s *sampler) run(ctx context.Context) error {
	tick := time.NewTicker(sampleEach)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return s.checkPending()
		case <-tick.C:
		}
		if err := s.sample(); err != nil {
			return err
		}
		if err := s.checkPending(); err != nil {
			return err
		}
	}
}

func (s *sampler) sample() error {
	if err := checkLedgers(); err != nil {
		return violated(err)
	}
	now := sample{before: s.attempts.mark()}
	now.snapshots = leastconnbalancer.Snapshots()
	now.at = time.Now()
	now.begun = s.attempts.mark().begun
	var err error
	if now.counts, err = countsOf(now.snapshots, s.env); err == nil {
		err = now.tooHigh()
	}
	if err != nil {
		return &violation{err, now.snapshots}
	}
	s.report.sampled()
	if s.taken++; s.taken%lowEach == 0 {
		s.pending = append(s.pending, now)
	}
	return nil
}

// checkPending looks again at the samples that are old enough.
func (s *sampler) checkPending() error {
	for len(s.pending) > 0 && time.Since(s.pending[0].at) > endDelay {
		old := s.pending[0]
		s.pending = s.pending[1:]
		if err := old.tooLow(s.attempts.openAfter); err != nil {
			return &violation{fmt.Errorf("%w (seen %v later)", err, time.Since(old.at).Round(time.Millisecond)), old.snapshots}
		}
	}
	return nil
}

// checkLedgers says what is wrong inside the ledgers.
func checkLedgers() error {
	for _, l := range state.Ledgers() {
		if err := l.Check(); err != nil {
			return fmt.Errorf("ledger %q: %w", l.Key(), err)
		}
	}
	return nil
}
