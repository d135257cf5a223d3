package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop/grpc_testing"
)

// driver makes the RPCs of one channel.
type driver struct {
	ctx      context.Context // of all RPCs: it outlives the channel
	channel  *channel
	attempts *attempts
	clock    *clock
	report   *report

	running sync.WaitGroup
	soon    atomic.Int64 // RPCs that are to be over, or open, soon
	later   atomic.Int64 // those that are held or abandoned
}

// play makes the calls of a round, each at its time whatever became of the others.
func (d *driver) play(ctx context.Context, round int, calls []call) error {
	for _, c := range calls {
		if err := d.clock.wait(ctx, moment{round, c.at}); err != nil {
			return err
		}
		d.soon.Add(1)
		d.running.Go(func() { d.make(c) })
	}
	return nil
}

// make makes one RPC and counts how it ended.
func (d *driver) make(c call) {
	isOpen := sync.OnceFunc(func() { d.soon.Add(-1) })
	defer isOpen()
	k := kindOf(c.kind)
	ctx, r := withRPC(d.ctx)
	defer d.attempts.over(r)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := d.channel.current().Client()
	var err error
	switch k.ending {
	case held, abandoned:
		err = d.keep(ctx, cancel, k, c, r, isOpen)
	case moving:
		err = d.move(ctx, k, c, isOpen)
	case cancelled:
		defer time.AfterFunc(c.after, cancel).Stop()
		err = k.exchange(ctx, client, c)
	case deadlined:
		ctx, cancel := context.WithTimeout(ctx, c.after)
		defer cancel()
		err = k.exchange(ctx, client, c)
	default:
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err = k.exchange(ctx, client, c)
	}
	d.report.ended(k.name, err)
}

// exchange makes an RPC to its end, which is left to ctx unless the kind's is to be finished.
func (k kind) exchange(ctx context.Context, client grpc_testing.TestServiceClient, c call) error {
	if k.stream == nil {
		_, err := client.UnaryCall(ctx, &grpc_testing.SimpleRequest{Payload: c.payload()}, grpc.WaitForReady(k.ready))
		return err
	}
	cs, err := k.stream.talk(ctx, client, c)
	if err != nil {
		return err
	}
	if k.ending == finished {
		if k.stream.request == nil {
			return nil // the server would go on for ever; the caller ends ctx
		}
		if err := cs.CloseSend(); err != nil {
			return err
		}
	}
	return k.stream.drain(cs)
}

// keep opens a stream and ends it at its moment. Meanwhile it is either read, so that the client notices when it breaks,
// or ended by the server alone.
func (d *driver) keep(ctx context.Context, cancel context.CancelFunc, k kind, c call, r *rpc, isOpen func()) error {
	overdue := time.AfterFunc(limit, cancel)
	cs, err := k.stream.talk(ctx, d.channel.current().Client(), c)
	overdue.Stop()
	if err != nil {
		return err
	}
	if k.ending == abandoned {
		if err := cs.CloseSend(); err != nil {
			return err
		}
		d.attempts.abandon(r)
		d.report.leave()
	}
	d.later.Add(1)
	defer d.later.Add(-1)
	isOpen()
	if k.ending == abandoned {
		if d.clock.wait(ctx, c.until) == nil && !c.read {
			cancel()
		}
		return k.stream.drain(cs)
	}
	d.running.Go(func() {
		switch {
		case d.clock.wait(ctx, c.until) != nil:
		case c.read && k.stream.request != nil:
			_ = cs.CloseSend() // what comes of it is received below
		default:
			cancel()
		}
	})
	return k.stream.drain(cs)
}

// clock is the time of the plan. It goes on while a round is played, and stands between two rounds.
type clock struct {
	mu    sync.Mutex
	round int
	began time.Time
	next  chan struct{} // closed when the next round begins
}

func newClock() *clock { return &clock{round: -1, next: make(chan struct{})} }

// begin begins the next round.
func (c *clock) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.round++
	c.began = time.Now()
	close(c.next)
	c.next = make(chan struct{})
}

// wait returns when the moment has come, at once if it has passed, or with the error of ctx.
func (c *clock) wait(ctx context.Context, until moment) error {
	for {
		c.mu.Lock()
		round, began, next := c.round, c.began, c.next
		c.mu.Unlock()
		if round > until.round {
			return ctx.Err()
		}
		if round == until.round {
			return sleep(ctx, time.Until(began.Add(until.at)))
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sleep paces the plan. It is never what makes a check right.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
