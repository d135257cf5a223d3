package dns

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/resolver"
)

// lookup asks DNS once. It returns soon after its context has ended.
type lookup func(context.Context) answer

// answer is what a lookup found.
type answer struct {
	// endpoints are sorted and without repeats. If complete is true, none of them
	// are a list, too; else the last list stays.
	endpoints []endpoint
	complete  bool  // whether there is no more than that
	err       error // what failed, if anything did
}

const (
	jitter     = 0.2 // the share of a delay that chance takes off
	firstRetry = time.Second
)

// poller is a resolver that looks up at an interval and when it is asked to. It
// lives from start to Close.
type poller struct {
	// Set once.
	params
	cc     resolver.ClientConn
	lookup lookup
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended

	// requested holds a request of ResolveNow until a lookup starts because of it.
	requested chan struct{}

	// Only used by the goroutine.
	lastSent     []endpoint
	accepted     bool // whether the channel took the last list
	everAccepted bool // whether it ever took one with endpoints
	failures     int  // lookups so far, while it never did
}

// startPoller runs a poller.
func startPoller(p params, cc resolver.ClientConn, lookup lookup) *poller {
	ctx, cancel := context.WithCancel(context.Background())
	r := &poller{params: p, cc: cc, lookup: lookup, cancel: cancel, done: make(chan struct{}), requested: make(chan struct{}, 1)}
	go r.run(ctx)
	return r
}

// ResolveNow asks for a lookup: one that starts after this call, and at least
// minInterval after the end of the one before.
func (r *poller) ResolveNow(resolver.ResolveNowOptions) {
	select {
	case r.requested <- struct{}{}:
	default:
	}
}

// Close ends the poller and returns when it has ended. Closing twice changes
// nothing.
func (r *poller) Close() {
	r.cancel()
	<-r.done
}

func (r *poller) run(ctx context.Context) {
	defer close(r.done)
	for {
		a := r.lookupOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		r.send(a)
		if !r.waitForNext(ctx, r.delay(rand.Float64())) {
			return
		}
	}
}

func (r *poller) lookupOnce(ctx context.Context) answer {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	return r.lookup(ctx)
}

// send tells the channel what is new. An error comes last: if the list has
// become empty, it tells RPCs why.
func (r *poller) send(a answer) {
	empty := len(a.endpoints) == 0
	if !empty || a.complete && r.everAccepted {
		if !r.accepted || !slices.Equal(a.endpoints, r.lastSent) {
			err := r.cc.UpdateState(stateOf(a.endpoints))
			// Policies refuse an empty list and go by it.
			r.lastSent, r.accepted = a.endpoints, err == nil || empty
			r.everAccepted = r.everAccepted || err == nil
		}
	}
	if r.failures++; r.everAccepted {
		r.failures = 0
	}
	if a.err != nil {
		r.cc.ReportError(a.err)
	}
}

// delay returns how long to wait for the next lookup. chance is from 0 to below 1. While the channel
// has never had an endpoint, lookups come faster.
func (r *poller) delay(chance float64) time.Duration {
	d := r.interval
	if r.failures > 0 {
		d = firstRetry
		for i := 1; i < r.failures && d < r.interval; i++ {
			d *= 2
		}
		d = min(d, r.interval)
	}
	return d - time.Duration(chance*jitter*float64(d))
}

// waitForNext waits for the next lookup, and reports whether there is to be one.
func (r *poller) waitForNext(ctx context.Context, delay time.Duration) bool {
	next := time.NewTimer(delay)
	defer next.Stop()
	earliest := time.NewTimer(r.minInterval)
	defer earliest.Stop()
	var requested <-chan struct{} // nil until the earliest time
	for {
		select {
		case <-ctx.Done():
			return false
		case <-next.C:
			return true
		case <-requested:
			return true
		case <-earliest.C:
			requested = r.requested
		}
	}
}
