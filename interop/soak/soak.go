package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// patience is how long a quiet point may take to become quiet: it is generous, as only what never becomes so is wrong.
const patience = 30 * time.Second

// soak is one run.
type soak struct {
	set      settings
	began    time.Time
	plan     *plan
	clock    *clock
	attempts *attempts
	report   *report
	site     *site
	drivers  []*driver
	sampler  *sampler
	quiet    *quiet

	mu   sync.Mutex
	out  io.Writer
	step string // what is being done, for a violation
}

func newSoak(set settings, out io.Writer) *soak {
	s := &soak{
		set: set, out: out, began: time.Now(), step: "start",
		plan: newPlan(set), clock: newClock(), attempts: newAttempts(), report: newReport(), site: &site{},
	}
	s.sampler = &sampler{site: s.site, attempts: s.attempts, report: s.report}
	s.quiet = &quiet{site: s.site, attempts: s.attempts, report: s.report, patience: patience}
	return s
}

// run soaks until the duration is over or ctx ends, which is no error. It returns what went wrong first.
func (s *soak) run(ctx context.Context) error {
	goroutines := runtime.NumGoroutine()
	rpcs, endRPCs := context.WithCancel(context.WithoutCancel(ctx))
	err := s.open(rpcs)
	if err == nil {
		err = s.day(ctx)
	}
	if err == nil {
		s.at("end")
	}
	closed := s.close(endRPCs)
	if err == nil {
		err = closed
	}
	if err == nil {
		err = s.nothingLeft(goroutines)
	}
	if err == nil {
		s.report.outlived()
	}
	return err
}

// open starts servers and channels.
func (s *soak) open(rpcs context.Context) (err error) {
	if s.site.fleet, err = startFleet(s.set.nodes); err != nil {
		return err
	}
	for _, spec := range channelSpecs {
		c, err := open(spec, s.site.fleet, s.attempts)
		if err != nil {
			return err
		}
		s.site.channels = append(s.site.channels, c)
		s.drivers = append(s.drivers, &driver{ctx: rpcs, channel: c, attempts: s.attempts, clock: s.clock, report: s.report})
	}
	s.quiet.drivers = s.drivers
	return nil
}

// close closes channels and servers, in this order, while RPCs run, and waits for all that was started.
func (s *soak) close(endRPCs context.CancelFunc) error {
	var errs []error
	for _, c := range s.site.channels {
		errs = append(errs, c.close())
	}
	endRPCs()
	for _, d := range s.drivers {
		d.running.Wait()
	}
	s.site.fleet.close()
	return errors.Join(errs...)
}

// nothingLeft waits until no RPC is counted, no ledger is left and the goroutines are as many as before.
func (s *soak) nothingLeft(goroutines int) error {
	return s.quiet.wait(context.Background(), "nothing to be left", func() error {
		runtime.GC()
		return leftovers{
			open:       s.attempts.count(),
			ledgers:    state.Snapshots(),
			goroutines: runtime.NumGoroutine() - goroutines,
		}.check()
	})
}

// leftovers is what is there after everything was closed.
type leftovers struct {
	open       int // attempts
	ledgers    []state.Snapshot
	goroutines int // more than before
}

// check says what is left.
func (l leftovers) check() error {
	var errs []error
	if l.open != 0 {
		errs = append(errs, fmt.Errorf("%d attempts are open", l.open))
	}
	for _, s := range l.ledgers {
		errs = append(errs, fmt.Errorf("there is a ledger %q with %d nodes, %d in flight", s.ResourceKey, len(s.Endpoints), s.InFlight))
	}
	if l.goroutines > 0 {
		errs = append(errs, fmt.Errorf("%d goroutines more than before", l.goroutines))
	}
	return errors.Join(errs...)
}

// at notes what is done now.
func (s *soak) at(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step = step
}

// say prints a line.
func (s *soak) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.out, line)
}
