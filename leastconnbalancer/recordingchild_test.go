package leastconnbalancer_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/connectivity"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// childRecorder stands in for pick_first and counts the calls on children.
type childRecorder struct {
	balancer.Builder
	built, closed      atomic.Int64
	late, twice, among atomic.Int64 // calls after or during Close, Closes, calls during another
	exits              atomic.Int64
	idle               bool // children report IDLE while they close
}

// recordChildren puts a recorder into gRPC's registry until the test ends. No other
// channel may be in use.
func recordChildren(t *testing.T) *childRecorder {
	pickFirst := balancer.Get(pickfirst.Name)
	r := &childRecorder{Builder: pickFirst}
	balancer.Register(r)
	t.Cleanup(func() { balancer.Register(pickFirst) })
	return r
}

func (r *childRecorder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	r.built.Add(1)
	return &recordingChild{Balancer: r.Builder.Build(cc, opts), recorder: r, cc: cc}
}

// recordingChild is a pick_first policy.
type recordingChild struct {
	balancer.Balancer
	recorder *childRecorder
	cc       balancer.ClientConn
	closed   atomic.Bool
	busy     atomic.Int64
}

func (c *recordingChild) call(do func()) {
	if c.closed.Load() {
		c.recorder.late.Add(1)
	}
	if c.busy.Add(1) != 1 {
		c.recorder.among.Add(1)
	}
	do()
	c.busy.Add(-1)
}

func (c *recordingChild) UpdateClientConnState(s balancer.ClientConnState) (err error) {
	c.call(func() { err = c.Balancer.UpdateClientConnState(s) })
	return err
}

func (c *recordingChild) ResolverError(err error) { c.call(func() { c.Balancer.ResolverError(err) }) }

func (c *recordingChild) ExitIdle() {
	c.recorder.exits.Add(1)
	c.call(c.Balancer.ExitIdle)
}

func (c *recordingChild) Close() {
	if c.closed.Swap(true) {
		c.recorder.twice.Add(1)
	}
	c.busy.Add(1)
	if c.recorder.idle {
		c.cc.UpdateState(balancer.State{ConnectivityState: connectivity.Idle, Picker: base.NewErrPicker(balancer.ErrNoSubConnAvailable)})
	}
	c.Balancer.Close()
	c.busy.Add(-1)
	c.recorder.closed.Add(1)
}

func TestNoChildIsCalledAfterClose(t *testing.T) {
	r := recordChildren(t)
	e := newEnv(t)
	ns := e.nodes("a", "b", "c")
	for range 40 {
		flapAndClose(e, ns)
	}
	e.wait("all children are closed", func() bool { return r.closed.Load() == r.built.Load() })
	require.GreaterOrEqual(t, r.built.Load(), int64(120), "children")
	require.Positive(t, r.exits.Load(), "children that were told to leave idle mode")
	require.Zero(t, r.late.Load(), "calls after Close")
	require.Zero(t, r.twice.Load(), "second Closes")
	require.Zero(t, r.among.Load(), "calls during another call")
}

// flapAndClose closes a channel while its connections break, its list changes and
// RPCs run.
func flapAndClose(e *env, ns []*leastconntest.Node) {
	c := e.unused(leastconntest.ChannelConfig{Endpoints: leastconntest.Endpoints(ns...)})
	c.Connect()
	var wg sync.WaitGroup
	var closing atomic.Bool
	defer wg.Wait()
	defer c.Close()
	defer closing.Store(true)
	flap := func() {
		for _, n := range ns {
			wg.Go(n.GoAway)
		}
		wg.Go(func() {
			_ = c.UpdateNodes(ns[rand.IntN(len(ns)):]...)
			c.Connect()
		})
	}
	var answered atomic.Int64
	for range 2 {
		wg.Go(func() {
			for !closing.Load() {
				if _, err := c.Unary(e.ctx, grpc.WaitForReady(true)); err == nil {
					answered.Add(1)
				}
			}
		})
	}
	for range rand.IntN(4) {
		seen := answered.Load()
		flap()
		e.wait("RPCs run", func() bool { return answered.Load() > seen+2 })
	}
	flap()
}

// Channels that are closed, as they connect, serve, or hold streams, and children
// that report IDLE at their Close, leave no goroutine and no connection.
func TestClosedChannelsLeaveNothing(t *testing.T) {
	r := recordChildren(t)
	r.idle = true
	e := newEnv(t)
	ns := e.nodes("a", "b", "c")
	goroutines := runtime.NumGoroutine()
	for i := range 30 {
		c := e.unused(leastconntest.ChannelConfig{Endpoints: leastconntest.Endpoints(ns...)})
		c.Connect()
		switch i % 3 {
		case 0: // closed while it connects
		case 1:
			c.waitReady(ns...)
			c.update(ns[1:]...)
			require.NoError(t, c.UpdateNodes(ns[0]))
		case 2:
			c.hold(3) // left open
			require.NoError(t, c.UpdateNodes(ns[1:]...))
		}
		require.NoError(t, c.Close())
	}
	e.atMostGoroutines(goroutines)
	e.wait("no connection is left", func() bool { return ns[0].OpenConns()+ns[1].OpenConns()+ns[2].OpenConns() == 0 })
	require.Equal(t, int64(100), r.built.Load(), "children")
	require.Equal(t, int64(100), r.closed.Load(), "children that are closed")
	require.Zero(t, r.late.Load(), "calls after Close")
}
