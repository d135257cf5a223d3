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
	// endpoints are sorted and without repeats. None of them are a list, too, if
	// known is true; else the last list stays.
	endpoints []endpoint
	known     bool
	err       error // what failed, if anything did
}

const (
	jitter     = 0.2 // the share of a pause that chance takes off
	firstRetry = time.Second
)

// poller is a resolver that looks up at an interval and when it is asked to. It
// lives from start to Close.
type poller struct {
	// Set once.
	params
	cc     resolver.ClientConn
	look   lookup
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended

	// asked holds a request of ResolveNow until a lookup starts because of it.
	asked chan struct{}

	// Only used by the goroutine.
	sent     []endpoint // the last list
	taken    bool       // whether the channel took it
	ever     bool       // whether it ever took one with endpoints
	failures int        // lookups since then, if it never did
}

// start runs a poller.
func start(p params, cc resolver.ClientConn, look lookup) *poller {
	ctx, cancel := context.WithCancel(context.Background())
	r := &poller{params: p, cc: cc, look: look, cancel: cancel, done: make(chan struct{}), asked: make(chan struct{}, 1)}
	go r.run(ctx)
	return r
}

// ResolveNow asks for a lookup: one that starts after this call, and at least
// minInterval after the end of the one before.
func (r *poller) ResolveNow(resolver.ResolveNowOptions) {
	select {
	case r.asked <- struct{}{}:
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
		a := r.lookOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		r.send(a)
		if !r.pause(ctx, r.wait(rand.Float64())) {
			return
		}
	}
}

func (r *poller) lookOnce(ctx context.Context) answer {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	return r.look(ctx)
}

// send tells the channel what is new. An error comes last: if the list has
// become empty, it tells RPCs why.
func (r *poller) send(a answer) {
	empty := len(a.endpoints) == 0
	if !empty || a.known && r.ever {
		if !r.taken || !slices.Equal(a.endpoints, r.sent) {
			err := r.cc.UpdateState(stateOf(a.endpoints))
			// Policies refuse an empty list and go by it.
			r.sent, r.taken = a.endpoints, err == nil || empty
			r.ever = r.ever || err == nil
		}
	}
	if r.failures++; r.ever {
		r.failures = 0
	}
	if a.err != nil {
		r.cc.ReportError(a.err)
	}
}

// wait returns how long to pause; chance is from 0 to below 1. While the channel
// has never had an endpoint, lookups come faster.
func (r *poller) wait(chance float64) time.Duration {
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

// pause waits for the next lookup, and reports whether there is to be one.
func (r *poller) pause(ctx context.Context, wait time.Duration) bool {
	due := time.NewTimer(wait)
	defer due.Stop()
	open := time.NewTimer(r.minInterval)
	defer open.Stop()
	var asked <-chan struct{} // nil until open
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due.C:
			return true
		case <-asked:
			return true
		case <-open.C:
			asked = r.asked
		}
	}
}
