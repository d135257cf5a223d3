package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

const (
	// agreeing is how often in a row all books have to agree: once may be chance.
	agreeing = 5
	// firstFull is how many full quiet points the later ones are compared with.
	firstFull = 2
)

// quiet checks quiet points: nothing is injected and no RPC begins.
type quiet struct {
	site     *site
	attempts *attempts
	drivers  []*driver
	report   *report
	patience time.Duration // how long anything may take to become what it has to be
	full     int           // full points so far
	first    footprint
}

// point waits until all books agree.
func (q *quiet) point(ctx context.Context, full bool) error {
	if err := q.wait(ctx, "all RPCs that are to be over to end", q.over(func(d *driver) int64 { return d.soon.Load() })); err != nil {
		return err
	}
	if err := q.report.unexplained(); err != nil {
		return violated(err)
	}
	if full {
		if err := q.wait(ctx, "all held RPCs to end", q.over(func(d *driver) int64 { return d.later.Load() })); err != nil {
			return err
		}
	}
	if err := q.agree(ctx, full); err != nil {
		return err
	}
	if full {
		return q.recovered(ctx)
	}
	return nil
}

// over says how many RPCs of a sort are left.
func (q *quiet) over(left func(*driver) int64) func() error {
	return func() error {
		var errs []error
		for _, d := range q.drivers {
			if n := left(d); n != 0 {
				errs = append(errs, fmt.Errorf("%d of channel %s have not", n, d.channel.spec.name))
			}
		}
		return errors.Join(errs...)
	}
}

// agree waits until the books agree and, at a full point, show nothing in flight.
func (q *quiet) agree(ctx context.Context, full bool) error {
	times := 0
	return q.wait(ctx, "what is counted, open and served to agree", func() error {
		b, err := keep(q.site, q.attempts)
		if err == nil {
			err = b.check()
		}
		if err == nil && full {
			err = b.idle()
		}
		if times++; err != nil {
			times = 0
			return err
		}
		if times < agreeing {
			return fmt.Errorf("they have agreed %d times in a row, want %d", times, agreeing)
		}
		return nil
	})
}

// recovered waits until all that was broken is whole again, and compares the footprint with the first ones.
func (q *quiet) recovered(ctx context.Context) error {
	if err := q.wait(ctx, "every listed server to be ready in every channel", q.ready); err != nil {
		return err
	}
	for _, c := range q.site.channels {
		bounded, cancel := context.WithTimeout(ctx, q.patience)
		_, err := c.now().Unary(bounded, grpc.WaitForReady(true))
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return violated(fmt.Errorf("an RPC over channel %s, all of whose servers are well: %w", c.spec.name, err))
		}
	}
	if err := q.wait(ctx, "connections that nobody needs to close", q.connections); err != nil {
		return err
	}
	q.full++
	if q.full <= firstFull {
		q.first = q.first.over(measure())
	}
	defer func() { q.report.footprint(q.first, measure()) }()
	return q.wait(ctx, "the footprint to be as at first", func() error { return measure().flat(q.first) })
}

// ready says which listed server a channel may not use yet.
func (q *quiet) ready() error {
	usable := map[string]map[string]bool{} // addresses, by roster
	for _, s := range state.Snapshots() {
		for _, n := range s.Endpoints {
			for _, m := range n.Members {
				if usable[m.EndpointSet] == nil {
					usable[m.EndpointSet] = map[string]bool{}
				}
				for _, a := range n.Addresses {
					usable[m.EndpointSet][a] = usable[m.EndpointSet][a] || m.Ready && !m.Draining
				}
			}
		}
	}
	var errs []error
	for _, c := range q.site.channels {
		for _, m := range c.members() {
			if addr := m.now().addr; !usable[c.now().Conn().CanonicalTarget()][addr] {
				errs = append(errs, fmt.Errorf("%s at %s is not ready in channel %s", m.name, addr, c.spec.name))
			}
		}
	}
	return errors.Join(errs...)
}

// connections says whether there is one for each listed server of each channel, and none of a channel that may be idle.
func (q *quiet) connections() error {
	want := 0
	for _, c := range q.site.channels {
		if c.spec.idle > 0 && !c.isIdle() {
			return fmt.Errorf("channel %s is not idle", c.spec.name)
		}
		want += len(c.members())
	}
	if open := q.site.fleet.conns(); open != want {
		return fmt.Errorf("%d connections are open, want %d", open, want)
	}
	return nil
}

// wait waits until nothing is wrong any more. What still is after its patience is a violation.
func (q *quiet) wait(ctx context.Context, what string, wrong func() error) error {
	bounded, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	var last error
	err := leastconntest.WaitFor(bounded, what, func() bool { last = wrong(); return last == nil })
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return violated(fmt.Errorf("waited %v for %s: %w", q.patience, what, last))
}
