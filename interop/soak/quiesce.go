package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

const (
	// agreeing is how often in a row all parties have to agree: once may be chance.
	agreeing = 5
	// firstFull is how many full quiet points the later ones are compared with.
	firstFull = 2
)

// quiesce checks quiet points: nothing is injected and no RPC begins.
type quiesce struct {
	env      *env
	attempts *attempts
	drivers  []*driver
	report   *report
	patience time.Duration // how long anything may take to become what it has to be
	full     int           // full points so far
	first    footprint
}

// check waits until all parties agree.
func (q *quiesce) check(ctx context.Context, full bool) error {
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
	if err := q.waitReconciled(ctx, full); err != nil {
		return err
	}
	if full {
		return q.waitRecovered(ctx)
	}
	return nil
}

// over says how many RPCs of a sort are left.
func (q *quiesce) over(left func(*driver) int64) func() error {
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

// waitReconciled waits until all parties agree and, at a full point, show nothing in flight.
func (q *quiesce) waitReconciled(ctx context.Context, full bool) error {
	times := 0
	return q.wait(ctx, "what is counted, open and served to agree", func() error {
		b, err := reconcile(q.env, q.attempts)
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

// waitRecovered waits until all that was broken is whole again, and compares the footprint with the first ones.
func (q *quiesce) waitRecovered(ctx context.Context) error {
	if err := q.wait(ctx, "every listed server to be ready in every channel", q.ready); err != nil {
		return err
	}
	if err := q.wait(ctx, "every server to report to each ledger that listens", q.env.checkReports); err != nil {
		return err
	}
	for _, c := range q.env.channels {
		bounded, cancel := context.WithTimeout(ctx, q.patience)
		_, err := c.current().Unary(bounded, grpc.WaitForReady(true))
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
	return q.wait(ctx, "the footprint to be as at first", func() error { return measure().leakCheck(q.first) })
}

// ready says which listed server a channel may not use yet.
func (q *quiesce) ready() error {
	usable := map[string]map[string]bool{} // addresses, by endpoint set
	for _, s := range leastconnbalancer.Snapshots() {
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
	for _, c := range q.env.channels {
		for _, m := range c.members() {
			if addr := m.current().addr; !usable[c.current().Conn().CanonicalTarget()][addr] {
				errs = append(errs, fmt.Errorf("%s at %s is not ready in channel %s", m.name, addr, c.spec.name))
			}
		}
	}
	return errors.Join(errs...)
}

// connections says whether there is one for each listed server of each channel, and none of a channel that may be idle.
func (q *quiesce) connections() error {
	want := 0
	for _, c := range q.env.channels {
		if c.spec.idle > 0 && !c.isIdle() {
			return fmt.Errorf("channel %s is not idle", c.spec.name)
		}
		want += len(c.members())
	}
	if open := q.env.fleet.conns(); open != want {
		return fmt.Errorf("%d connections are open, want %d", open, want)
	}
	return nil
}

// wait waits until nothing is wrong any more. What still is after its patience is a violation.
func (q *quiesce) wait(ctx context.Context, what string, wrong func() error) error {
	bounded, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	var last error
	err := leastconntest.WaitFor(bounded, what, func() bool { last = wrong(); return last == nil })
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return violated(fmt.Errorf("waited %v for %s: %w", q.patience, what, last))
}

// footprint is what the process takes at a full quiet point, when no RPC runs and every channel is connected to every
// server that it lists.
type footprint struct {
	goroutines int
	heap       uint64 // bytes that are reachable
	nodes      int    // of all ledgers
}

// How far footprints may be above the first ones. Of nodes there may be no more, ever.
const (
	moreGoroutines = 10
	moreHeap       = 8 << 20
)

// measure takes the footprint of the process.
func measure() footprint {
	runtime.GC()
	runtime.GC() // for what finalizers and pools have let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f := footprint{goroutines: runtime.NumGoroutine(), heap: m.HeapAlloc}
	for _, s := range leastconnbalancer.Snapshots() {
		f.nodes += len(s.Endpoints)
	}
	return f
}

// leakCheck says how the footprint has outgrown the first ones.
func (f footprint) leakCheck(first footprint) error {
	if most := first.goroutines + moreGoroutines; f.goroutines > most {
		return fmt.Errorf("%d goroutines, at first %d, at most %d may be", f.goroutines, first.goroutines, most)
	}
	if most := first.heap + moreHeap; f.heap > most {
		return fmt.Errorf("%.1f MB of heap, at first %.1f, at most %.1f may be", mega(f.heap), mega(first.heap), mega(most))
	}
	if f.nodes > first.nodes {
		return fmt.Errorf("%d nodes in ledgers, at first %d", f.nodes, first.nodes)
	}
	return nil
}

// over returns the larger figures of both.
func (f footprint) over(o footprint) footprint {
	return footprint{max(f.goroutines, o.goroutines), max(f.heap, o.heap), max(f.nodes, o.nodes)}
}

func mega(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

// leftovers is what is there after everything was closed.
type leftovers struct {
	open       int // attempts
	ledgers    []leastconnbalancer.Snapshot
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
