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

// spy stands in for pick_first and sees every call on a child.
type spy struct {
	balancer.Builder
	built, closed      atomic.Int64
	late, twice, among atomic.Int64 // calls after or during Close, Closes, calls during another
	exits              atomic.Int64
	idle               bool // children report IDLE while they close
}

// spyOnChildren puts a spy into gRPC's registry until the test ends. No other
// channel may be in use.
func spyOnChildren(t *testing.T) *spy {
	pickFirst := balancer.Get(pickfirst.Name)
	s := &spy{Builder: pickFirst}
	balancer.Register(s)
	t.Cleanup(func() { balancer.Register(pickFirst) })
	return s
}

func (s *spy) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	s.built.Add(1)
	return &spiedChild{Balancer: s.Builder.Build(cc, opts), spy: s, cc: cc}
}

// spiedChild is a pick_first policy.
type spiedChild struct {
	balancer.Balancer
	spy    *spy
	cc     balancer.ClientConn
	closed atomic.Bool
	busy   atomic.Int64
}

func (c *spiedChild) call(do func()) {
	if c.closed.Load() {
		c.spy.late.Add(1)
	}
	if c.busy.Add(1) != 1 {
		c.spy.among.Add(1)
	}
	do()
	c.busy.Add(-1)
}

func (c *spiedChild) UpdateClientConnState(s balancer.ClientConnState) (err error) {
	c.call(func() { err = c.Balancer.UpdateClientConnState(s) })
	return err
}

func (c *spiedChild) ResolverError(err error) { c.call(func() { c.Balancer.ResolverError(err) }) }

func (c *spiedChild) ExitIdle() {
	c.spy.exits.Add(1)
	c.call(c.Balancer.ExitIdle)
}

func (c *spiedChild) Close() {
	if c.closed.Swap(true) {
		c.spy.twice.Add(1)
	}
	c.busy.Add(1)
	if c.spy.idle {
		c.cc.UpdateState(balancer.State{ConnectivityState: connectivity.Idle, Picker: base.NewErrPicker(balancer.ErrNoSubConnAvailable)})
	}
	c.Balancer.Close()
	c.busy.Add(-1)
	c.spy.closed.Add(1)
}

func TestNoChildIsCalledAfterClose(t *testing.T) {
	s := spyOnChildren(t)
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	for range 60 {
		flapAndClose(l, ns)
	}
	l.wait("all children are closed", func() bool { return s.closed.Load() == s.built.Load() })
	require.Greater(t, s.built.Load(), int64(180), "children")
	require.Positive(t, s.exits.Load(), "children that were told to leave idle mode")
	require.Zero(t, s.late.Load(), "calls after Close")
	require.Zero(t, s.twice.Load(), "second Closes")
	require.Zero(t, s.among.Load(), "calls during another call")
}

func TestChildThatIsIdleAtCloseIsNotCalled(t *testing.T) {
	s := spyOnChildren(t)
	s.idle = true
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	goroutines := runtime.NumGoroutine()
	for range 10 {
		c := l.dial(ns...)
		c.update(ns[1:]...)
		require.NoError(t, c.UpdateNodes(ns[0]))
		require.NoError(t, c.Close())
	}
	l.atMostGoroutines(goroutines)
	require.Equal(t, int64(40), s.built.Load(), "children")
	require.Equal(t, int64(40), s.closed.Load(), "children that are closed")
	require.Zero(t, s.late.Load(), "calls after Close")
}

// flapAndClose closes a channel while its connections break, its list changes
// and RPCs run.
func flapAndClose(l *lab, ns []*leastconntest.Node) {
	c := l.unused(leastconntest.ChannelConfig{Endpoints: leastconntest.Endpoints(ns...)})
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
				if _, err := c.Unary(l.ctx, grpc.WaitForReady(true)); err == nil {
					answered.Add(1)
				}
			}
		})
	}
	for range rand.IntN(4) {
		seen := answered.Load()
		flap()
		l.wait("RPCs run", func() bool { return answered.Load() > seen+2 })
	}
	flap()
}
