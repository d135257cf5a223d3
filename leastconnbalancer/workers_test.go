package leastconnbalancer_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// workers make one RPC after another until they are stopped.
type workers struct {
	env    *env
	cancel context.CancelFunc
	gone   sync.WaitGroup
	done   atomic.Int64 // RPCs
	failed atomic.Int64
}

// workers sets n to work. The context of their RPCs outlives stop.
func (e *env) workers(n int, rpc func(ctx context.Context, worker int) error) *workers {
	ctx, cancel := context.WithCancel(e.ctx)
	w := &workers{env: e, cancel: cancel}
	for i := range n {
		w.gone.Go(func() {
			for ctx.Err() == nil {
				if err := rpc(e.ctx, i); err != nil {
					w.failed.Add(1)
				}
				w.done.Add(1)
			}
		})
	}
	e.Cleanup(func() { w.stop() })
	return w
}

// callers make unary RPCs, none of which is to fail.
func (c *channel) callers(n int) *workers {
	return c.env.workers(n, func(ctx context.Context, _ int) error {
		_, err := c.Unary(ctx)
		assert.NoError(c.env, err)
		return err
	})
}

// goOn waits until some more RPCs have ended.
func (w *workers) goOn() {
	w.env.Helper()
	seen := w.done.Load()
	w.env.wait("RPCs go on", func() bool { return w.done.Load() > seen+10 })
}

func (w *workers) stop() {
	w.cancel()
	w.gone.Wait()
}

// behaviour says how long an RPC takes that begins so long after the first, and
// what it ends with.
type behaviour func(since time.Duration) (takes time.Duration, err error)

// always takes as long and ends with err.
func always(takes time.Duration, err error) behaviour {
	return func(time.Duration) (time.Duration, error) { return takes, err }
}

// call is an RPC that a worker has made.
type call struct {
	node   string
	begun  time.Duration // since the first
	failed bool
}

// work is some calls, in the order of their ends.
type work []call

// closedLoop lets workers call the endpoints for some time of a bubble, and rest
// for 2 ms after a failure.
func (c *fakeConn) closedLoop(workers int, d time.Duration, behaviours map[string]behaviour) (calls work) {
	c.tb.Helper()
	var mu sync.Mutex
	var loop sync.WaitGroup
	first := time.Now()
	for range workers {
		loop.Go(func() {
			for begun := time.Duration(0); begun < d && !c.tb.Failed(); begun = time.Since(first) {
				ctx, cancel := context.WithCancel(c.tb.Context()) // which tells RPCs apart
				res, found := c.pickWhile(ctx, func() bool { return time.Since(first) < d })
				if !found {
					cancel()
					return
				}
				node := res.SubConn.(*fakeSubConn).addr
				takes, err := behaviours[node](begun)
				time.Sleep(takes)
				res.Done(balancer.DoneInfo{Err: err, BytesSent: true, BytesReceived: true})
				cancel()
				mu.Lock()
				calls = append(calls, call{node, begun, err != nil})
				mu.Unlock()
				if err != nil {
					time.Sleep(2 * time.Millisecond)
				}
			}
		})
	}
	loop.Wait()
	synctest.Wait()
	require.Zero(c.tb, c.endpoint("b").InFlight)
	return calls
}

// pickWhile picks for an RPC until there is room for it, looking each millisecond.
func (c *fakeConn) pickWhile(ctx context.Context, more func() bool) (balancer.PickResult, bool) {
	for more() {
		res, err := c.picker().Pick(balancer.PickInfo{Ctx: ctx})
		if err == nil {
			return res, true
		}
		if err != balancer.ErrNoSubConnAvailable && !assert.Equal(c.tb, codes.ResourceExhausted, status.Code(err), "%v", err) {
			return res, false
		}
		time.Sleep(time.Millisecond)
	}
	return balancer.PickResult{}, false
}

// from leaves out the calls that began before.
func (w work) from(begun time.Duration) (later work) {
	for _, c := range w {
		if c.begun >= begun {
			later = append(later, c)
		}
	}
	return later
}

// failures is how many failed, served how many did not, by node.
func (w work) failures() (n int) {
	for _, c := range w {
		if c.failed {
			n++
		}
	}
	return n
}

func (w work) served() map[string]int {
	by := map[string]int{}
	for _, c := range w {
		if !c.failed {
			by[c.node]++
		}
	}
	return by
}
