package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// The course of a play, in parts of its duration.
const (
	joins  = 0.6 // a server joins
	breaks = 0.8 // the first server breaks
)

// downtime is how long the server that breaks is gone.
const downtime = time.Second

// settle is how many lives of streams, and reports, pass before anything is measured.
const settle = 3

// fleet is a play with one policy.
type fleet struct {
	options
	policy
	servers
	processes []*process

	mu       sync.Mutex
	broken   string    // the address of the server that has broken, "" before
	failures []failure // that no broken server explains
	cut      int       // streams that one does explain
}

// play runs a fleet with a policy and measures it. An error of ctx comes before those that follow from it.
func play(ctx context.Context, o options, p policy) (result, error) {
	got, err := playOn(ctx, o, p)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return got, err
}

func playOn(ctx context.Context, o options, p policy) (result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // kills what is left after an error
	f := &fleet{options: o, policy: p}
	defer f.close()
	defer f.endAll()
	if err := f.servers.start(o.servers); err != nil {
		return result{}, err
	}
	for i := range o.clients {
		c, err := startProcess(ctx, order{
			ServiceConfig: p.ServiceConfig(), Streams: o.streams, Life: o.life, Seed: [2]uint64{o.seed, uint64(i)}, Addrs: f.addrs(),
		}, f.failed)
		if c != nil {
			f.processes = append(f.processes, c)
		}
		if err != nil {
			return result{}, err
		}
	}
	got, err := f.measure(ctx)
	if err != nil {
		cancel()
		return result{}, err
	}
	err = f.finish(ctx, &got)
	return got, err
}

// failed takes up what a client says.
func (f *fleet) failed(x failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x.Addr != "" && x.Addr == f.broken {
		f.cut++
		return
	}
	f.failures = append(f.failures, x)
}

// measure lets the loads settle and watches them through the play.
func (f *fleet) measure(ctx context.Context) (result, error) {
	m := &meter{fleet: f}
	all := float64(f.clients * f.streams)
	started := func() bool { _, sum, _ := f.loads(); return sum >= 0.9*all }
	if err := leastconntest.WaitFor(ctx, "the streams to be open", started); err != nil {
		return result{}, err
	}
	length := func(part float64) time.Duration { return time.Duration(part * float64(f.duration)) }
	steps := []func() error{
		func() error { return m.watch(ctx, settle*max(f.life, f.interval)) },
		func() error { m.begin(); return m.watch(ctx, length(joins)) },
		func() error { m.steady = m.cv; return f.join() },
		func() error { return m.follow(ctx, &m.newcomer, len(f.nodes)-1, length(breaks-joins)) },
		func() error { return f.breakFirst(ctx, m) },
		func() error { return m.follow(ctx, &m.restarted, 0, length(1-breaks)) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return result{}, err
		}
	}
	return m.result(), nil
}

// join starts a server and tells all clients.
func (f *fleet) join() error {
	if err := f.servers.start(1); err != nil {
		return err
	}
	for _, p := range f.processes {
		if err := p.orders.Encode(order{Addrs: f.addrs()}); err != nil {
			return fmt.Errorf("telling a client: %w", err)
		}
	}
	return nil
}

// breakFirst breaks the first server and brings it back.
func (f *fleet) breakFirst(ctx context.Context, m *meter) error {
	first := f.nodes[0]
	f.mu.Lock()
	f.broken = first.Addr()
	f.mu.Unlock()
	f.down = first
	first.Stop()
	if err := m.watch(ctx, downtime); err != nil {
		return err
	}
	f.down = nil
	return first.Restart()
}

// endAll ends the clients and returns how many streams they have opened.
func (f *fleet) endAll() (opened int, err error) {
	for _, p := range f.processes {
		p.in.Close() // all at once
	}
	for _, p := range f.processes {
		n, ended := p.end()
		if opened += n; err == nil {
			err = ended
		}
	}
	f.processes = nil
	return opened, err
}

// finish ends the clients and adds to got what only then is known: that servers hold nothing any more.
func (f *fleet) finish(ctx context.Context, got *result) error {
	var err error
	if got.Opened, err = f.endAll(); err != nil {
		return err
	}
	idle := func() bool { _, sum, _ := f.loads(); return sum == 0 }
	if err := leastconntest.WaitFor(ctx, "the servers to hold no stream", idle); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	got.Cut = f.cut
	for _, x := range f.failures {
		got.Errors = append(got.Errors, fmt.Sprintf("%s: %s", x.Addr, x.Error))
	}
	return nil
}
