package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// patience is how long a quiet point may take to become quiet: it is generous, as only what never becomes so is wrong.
const patience = time.Minute

// soak is one run.
type soak struct {
	set      settings
	began    time.Time
	plan     *plan
	clock    *clock
	attempts *attempts
	report   *report
	env      *env
	drivers  []*driver
	sampler  *sampler
	quiesce  *quiesce

	mu   sync.Mutex
	out  io.Writer
	step string // what is being done, for a violation
}

func newSoak(set settings, out io.Writer) *soak {
	s := &soak{
		set: set, out: out, began: time.Now(), step: "start",
		plan: newPlan(set), clock: newClock(), attempts: newAttempts(), report: newReport(), env: &env{},
	}
	s.sampler = &sampler{env: s.env, attempts: s.attempts, report: s.report}
	s.quiesce = &quiesce{env: s.env, attempts: s.attempts, report: s.report, patience: patience}
	return s
}

// execute soaks until the duration is over or ctx ends, which is no error. It returns what went wrong first.
func (s *soak) execute(ctx context.Context) error {
	goroutines := runtime.NumGoroutine()
	rpcs, endRPCs := context.WithCancel(context.WithoutCancel(ctx))
	err := s.open(rpcs)
	if err == nil {
		err = s.run(ctx)
	}
	if err == nil {
		s.setStep("end")
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
	if s.env.fleet, err = startFleet(s.set.nodes); err != nil {
		return err
	}
	for _, spec := range channelSpecs {
		c, err := open(spec, s.env.fleet, s.attempts)
		if err != nil {
			return err
		}
		s.env.channels = append(s.env.channels, c)
		s.drivers = append(s.drivers, &driver{ctx: rpcs, channel: c, attempts: s.attempts, clock: s.clock, report: s.report})
	}
	s.quiesce.drivers = s.drivers
	return nil
}

// close closes channels and servers, in this order, while RPCs run, and waits for all that was started.
func (s *soak) close(endRPCs context.CancelFunc) error {
	var errs []error
	for _, c := range s.env.channels {
		errs = append(errs, c.close())
	}
	endRPCs()
	for _, d := range s.drivers {
		d.running.Wait()
	}
	s.env.fleet.close()
	return errors.Join(errs...)
}

// nothingLeft waits until no RPC is counted, no ledger is left and the goroutines are as many as before.
func (s *soak) nothingLeft(goroutines int) error {
	return s.quiesce.wait(context.Background(), "nothing to be left", func() error {
		runtime.GC()
		return leftovers{
			open:       s.attempts.count(),
			ledgers:    leastconnbalancer.Snapshots(),
			goroutines: runtime.NumGoroutine() - goroutines,
		}.check()
	})
}

// setStep notes what is done now.
func (s *soak) setStep(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step = step
}

// print prints a line.
func (s *soak) print(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.out, line)
}

// run plays rounds, each with its quiet point, and samples all along. What goes wrong first ends it.
func (s *soak) run(ctx context.Context) error {
	failing, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	sampled, stop := context.WithCancel(failing)
	defer stop()
	var sampling sync.WaitGroup
	sampling.Go(func() {
		if err := s.sampler.run(sampled); err != nil {
			fail(err)
		}
	})
	err := s.rounds(failing)
	stop()
	sampling.Wait()
	if cause := context.Cause(failing); cause != nil && !errors.As(err, new(*violation)) {
		err = cause
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

func (s *soak) rounds(ctx context.Context) error {
	s.setStep("first connections")
	if err := s.quiesce.wait(ctx, "every listed server to be ready in every channel", s.quiesce.ready); err != nil {
		return err
	}
	for played := 0; s.more(played); played++ {
		r := s.plan.next()
		s.setStep(fmt.Sprintf("round %d", r.number))
		if err := s.play(ctx, r); err != nil {
			return err
		}
		s.setStep(fmt.Sprintf("quiet point after round %d", r.number))
		if err := s.quiesce.check(ctx, r.full); err != nil {
			return err
		}
		s.report.survived(r.full)
	}
	return nil
}

// more says whether another round begins.
func (s *soak) more(played int) bool {
	if s.set.rounds > 0 {
		return played < s.set.rounds
	}
	return played == 0 || time.Since(s.began)+s.set.round <= s.set.duration
}

// play plays a round: all fault streams and channels side by side, until each has done all that the plan has for it.
func (s *soak) play(ctx context.Context, r round) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s.clock.begin()
	var playing sync.WaitGroup
	side := func(do func() error) {
		playing.Go(func() {
			if err := do(); err != nil {
				fail(err)
			}
		})
	}
	for i, steps := range r.steps {
		side(func() error { return s.inject(ctx, s.plan.streams[i], r.number, steps) })
	}
	for i, calls := range r.calls {
		side(func() error { return s.drivers[i].play(ctx, r.number, calls) })
	}
	playing.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return s.clock.wait(ctx, moment{r.number, s.set.round})
}

// inject has the faults of a stream happen.
func (s *soak) inject(ctx context.Context, l *faultStream, round int, steps []step) error {
	t := target{env: s.env, member: s.env.fleet.members[l.node], channel: s.env.channels[l.channel]}
	for _, st := range steps {
		if err := s.clock.wait(ctx, moment{round, st.at}); err != nil {
			return err
		}
		f := find(l.faults, st.fault)
		do, what := f.begin, "begins"
		switch {
		case st.end:
			do, what = f.end, "ends"
		case f.end == nil:
			what = "happens"
		}
		line := fmt.Sprintf("%8.3fs  round %d, %.3fs  %s: %s %s",
			time.Since(s.began).Seconds(), round, st.at.Seconds(), l.name, f.name, what)
		s.report.fault(f, st.end, line)
		if s.set.verbose {
			s.print(line)
		}
		if err := do(t, st.roll); err != nil {
			return fmt.Errorf("%s: %s: %w", l.name, f.name, err)
		}
	}
	return nil
}
