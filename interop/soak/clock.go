package main

import (
	"context"
	"sync"
	"time"
)

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
