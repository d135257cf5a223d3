package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// day plays rounds, each with its quiet point, and samples all along. What goes wrong first ends it.
func (s *soak) day(ctx context.Context) error {
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
	s.at("first connections")
	if err := s.quiet.wait(ctx, "every listed server to be ready in every channel", s.quiet.ready); err != nil {
		return err
	}
	for first := true; first || time.Since(s.began)+s.set.round <= s.set.duration; first = false {
		r := s.plan.next()
		s.at(fmt.Sprintf("round %d", r.number))
		if err := s.play(ctx, r); err != nil {
			return err
		}
		s.at(fmt.Sprintf("quiet point after round %d", r.number))
		if err := s.quiet.point(ctx, r.full); err != nil {
			return err
		}
		s.report.survived(r.full)
	}
	return nil
}

// play plays a round: all lanes and channels side by side, until each has done all that the plan has for it.
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
		side(func() error { return s.inject(ctx, s.plan.lanes[i], r.number, steps) })
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

// inject has a lane's faults happen.
func (s *soak) inject(ctx context.Context, l *lane, round int, steps []step) error {
	t := target{site: s.site, member: s.site.fleet.members[l.node], channel: s.site.channels[l.channel]}
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
			s.say(line)
		}
		if err := do(t, st.roll); err != nil {
			return fmt.Errorf("%s: %s: %w", l.name, f.name, err)
		}
	}
	return nil
}
