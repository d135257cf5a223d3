package state_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// channel does to a site what a gRPC channel does: RPCs that have to wait ask
// again at each picker that is published, and one goroutine publishes when the
// endpoint set wakes it.
type channel struct {
	*site
	wake  chan struct{}
	count *tally

	mu        sync.Mutex
	published chan struct{} // closed by the next picker
}

// tally is what the RPCs of all channels have come to.
type tally struct {
	at     map[string]*atomic.Int64 // in use, by endpoint
	cap    int64
	over   atomic.Int64 // above it
	served atomic.Int64
	ended  atomic.Int64 // while waiting
	stuck  atomic.Int64
}

func newChannel(s *site, count *tally) *channel {
	c := &channel{site: s, wake: make(chan struct{}, 1), count: count, published: make(chan struct{})}
	s.guard(state.Guards{FailurePenalty: 20 * time.Millisecond, Wake: c.wake})
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-c.wake:
				c.publish()
			case <-stop:
				return
			}
		}
	}()
	s.Cleanup(func() { close(stop); <-stopped })
	return c
}

func (c *channel) publish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.published)
	c.published = make(chan struct{})
}

func (c *channel) picker() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.published
}

// call is an RPC until it ends.
func (c *channel) call(ctx context.Context) {
	for {
		next := c.picker()
		lease, value, ok := c.view.Acquire()
		if !ok {
			var outcome state.Outcome
			lease, value, outcome = c.roster.AcquireOrQueue(ctx, nil, c.view)
			ok = outcome == state.Chosen
		}
		if ok {
			c.serve(value.(string), lease)
			return
		}
		select {
		case <-next:
		case <-ctx.Done():
			if ctx.Err() == context.DeadlineExceeded {
				c.count.stuck.Add(1)
			}
			c.count.ended.Add(1)
			return
		}
	}
}

func (c *channel) serve(addr string, lease state.Lease) {
	if n := c.count.at[addr].Add(1); n > c.count.cap {
		c.count.over.Add(1)
	}
	for range rand.IntN(4) {
		runtime.Gosched()
	}
	c.count.at[addr].Add(-1)
	if rand.IntN(8) == 0 {
		lease.Fail()
	} else {
		lease.Release()
	}
	c.count.served.Add(1)
}

// crowd has n callers make some calls each, of which some are ended.
func (c *channel) crowd(n, calls int, done *sync.WaitGroup) {
	for range n {
		done.Go(func() {
			for range calls {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				if rand.IntN(4) == 0 {
					done.Go(func() {
						for range rand.IntN(20) {
							runtime.Gosched()
						}
						cancel()
					})
				}
				c.call(ctx)
				cancel()
			}
		})
	}
}

// Many RPCs of two channels want what few endpoints have room for, while those
// flap, and some give up. No wake-up is lost: all of them are served or end. No
// cap is ever exceeded. Nothing is left.
func TestCrowdAtTheCap(t *testing.T) {
	const limit, callers, calls = 2, 40, 25
	x := newSite(t)
	y := newSiteOn(t, x.ledger)
	count := &tally{at: map[string]*atomic.Int64{}, cap: limit}
	addrs := names(3)
	for _, a := range addrs {
		count.at[a] = new(atomic.Int64)
	}
	var done, flapping sync.WaitGroup
	over := make(chan struct{})
	for _, s := range []*site{x, y} {
		s.capped(limit, addrs...)
		c := newChannel(s, count)
		flapping.Go(func() { c.flap(over) })
		c.crowd(callers, calls, &done)
	}
	done.Wait()
	close(over)
	flapping.Wait()
	require.Zero(t, count.stuck.Load(), "RPCs were not woken")
	require.Zero(t, count.over.Load(), "times above the cap")
	require.EqualValues(t, 2*callers*calls, count.served.Load()+count.ended.Load())
	require.Positive(t, count.ended.Load())
	require.Eventually(t, func() bool { return x.waiting() == 0 && x.ledger.Snapshot().InFlight == 0 },
		10*time.Second, time.Millisecond, "what has ended leaves")
	require.NoError(t, x.ledger.Check())
}

// flap takes endpoints out of the ready set and back, and changes caps below what
// they are at most.
func (c *channel) flap(over <-chan struct{}) {
	for i := 0; ; i++ {
		a := names(3)[i%3]
		m := c.members[a]
		switch rand.IntN(3) {
		case 0:
			c.view.Remove(m)
			runtime.Gosched()
			c.view.Set(m, 1, a)
		case 1:
			m.SetMaxInFlight(1)
			runtime.Gosched()
			m.SetMaxInFlight(uint32(c.count.cap))
		case 2:
			c.view.Set(m, rand.Uint32N(3), a)
			runtime.Gosched()
			c.view.Set(m, 1, a)
		}
		c.publish()
		select {
		case <-over:
			return
		default:
			runtime.Gosched()
		}
	}
}

// A thousand RPCs wait for one endpoint: each is served, in the order in which
// they came.
func TestThousandWaitInOrder(t *testing.T) {
	s := busySite(t, "a")
	rs := s.queued(1000)
	require.EqualValues(t, 1000, s.ledger.Snapshot().Waiting)
	s.end("a", 1)
	for i, r := range rs {
		lease, _, outcome := s.roster.AcquireOrQueue(r.ctx, nil, s.view)
		require.Equal(t, state.Chosen, outcome, fmt.Sprint("RPC ", i))
		require.True(t, lease.Release())
	}
	require.NoError(t, s.ledger.Check())
}
