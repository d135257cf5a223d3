package leastconnbalancer_test

import (
	"context"
	"sync"
	"time"
)

// crew are workers that make one RPC after another, and what came of them.
type crew struct {
	mu    sync.Mutex
	calls []call
	end   context.CancelFunc
	gone  sync.WaitGroup
}

// call is one RPC that a crew made.
type call struct {
	ended time.Time
	took  time.Duration
	result
}

// crew sets workers to work, who rest for a moment after an error.
func (c *channel) crew(workers int, rest time.Duration, rpc func(context.Context) (node string, err error)) *crew {
	ctx, cancel := context.WithCancel(c.lab.ctx)
	w := &crew{end: cancel}
	for range workers {
		w.gone.Go(func() {
			for ctx.Err() == nil {
				begun := time.Now()
				node, err := rpc(c.lab.ctx)
				w.note(call{time.Now(), time.Since(begun), result{node, err}})
				if err != nil {
					time.Sleep(rest)
				}
			}
		})
	}
	return w
}

func (w *crew) note(c call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, c)
}

// stop ends the work.
func (w *crew) stop() {
	w.end()
	w.gone.Wait()
}

// between returns the calls that ended in a time.
func (w *crew) between(from, to time.Time) (calls work) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if !c.ended.Before(from) && c.ended.Before(to) {
			calls = append(calls, c)
		}
	}
	return calls
}

// work is some calls.
type work []call

// served counts those that succeeded, by node.
func (w work) served() map[string]int {
	by := map[string]int{}
	for _, c := range w {
		if c.err == nil {
			by[c.node]++
		}
	}
	return by
}

// failed is how many failed.
func (w work) failed() (n int) {
	for _, c := range w {
		if c.err != nil {
			n++
		}
	}
	return n
}

// share is the part of the calls that failed.
func (w work) share() float64 { return float64(w.failed()) / float64(len(w)) }

// pause is the longest time that a node has answered nothing.
func (w work) pause(node string) (longest time.Duration) {
	last := w[0].ended
	for _, c := range append(w, call{ended: w[len(w)-1].ended, result: result{node: node}}) {
		if c.err == nil && c.node == node {
			longest = max(longest, c.ended.Sub(last))
			last = c.ended
		}
	}
	return longest
}
