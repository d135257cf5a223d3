package leastconnbalancer_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// levels lists the nodes of each level, the highest first.
func levels(levels ...[]*leastconntest.Node) []resolver.Endpoint {
	var eps []resolver.Endpoint
	for p, ns := range levels {
		for _, n := range ns {
			eps = append(eps, lcresolver.SetPriority(n.Endpoint(), uint32(p)))
		}
	}
	return eps
}

// priorityFailover configures how long RPCs wait for a level.
func priorityFailover(d time.Duration) leastconnbalancer.Config {
	return leastconnbalancer.Config{PriorityFailover: leastconnbalancer.NewDuration(d)}
}

// A GOAWAY is no reason to use the backup: the level is back in a moment.
func TestGoAwayLandsNothingOnTheBackup(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	cfg := intercepted(guarded(priorityFailover(longest)))
	cfg.Endpoints = levels(ns[:1], ns[1:])
	c := e.dialWith(cfg, ns...)
	var answered atomic.Int64
	callers := e.workers(8, func(ctx context.Context, i int) error {
		if i%2 == 0 {
			_, err := c.Unary(ctx)
			answered.Add(1)
			return err
		}
		s, err := c.Open(ctx)
		if err == nil {
			s.Cancel()
		}
		return err
	})
	for range 20 {
		// Of connections in a row that have answered nothing the next one comes later, and four
		// answers may be those of the connection before.
		seen := answered.Load()
		e.wait("the connection has answered", func() bool { return answered.Load() > seen+4 })
		conns := ns[0].Conns()
		ns[0].GoAway()
		e.wait("a is ready again", func() bool { return ns[0].Conns() > conns && c.ready(ns[0]) })
	}
	callers.stop()
	require.Zero(t, ns[1].Started(), "RPCs at the backup, %d at a", ns[0].Started())
}

// While a level connects again RPCs wait for it and resume there, or go to the
// next one if they are not to wait. One whose handshake takes its time beside
// another node gets none, and once it is there all that make up for it.
func TestReconnectingLevel(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failover time.Duration
		first    int // nodes on the first level
		during   string
	}{
		"waited for": {longest, 1, ""}, "not waited for": {0, 1, "b"}, "beside another node": {longest, 2, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			e := parallelEnv(t)
			ns := e.nodes("a", "b", "c")
			d := newDialer()
			cfg := guarded(priorityFailover(tt.failover))
			cfg.Endpoints, cfg.DialOptions = levels(ns[:tt.first], ns[tt.first:2], ns[2:]), d.options(5*time.Millisecond)
			c := e.dialWith(cfg, ns...)
			d.shut(ns[0])
			require.NoError(t, ns[0].Restart())
			e.wait("a connects again", func() bool { return d.attempts(ns[0]) >= 2 && !c.ready(ns[0]) })
			var waiting <-chan result
			if tt.during == "" {
				require.Equal(t, codes.DeadlineExceeded, c.brief())
				require.Equal(t, codes.DeadlineExceeded, c.brief(grpc.WaitForReady(true)))
				waiting = e.async(func() (string, error) { return c.Unary(e.ctx) })
			} else {
				_, by := c.hold(8)
				require.Equal(t, map[string]int{tt.during: 8}, by)
			}
			d.open(ns[0])
			c.waitReady(ns[0])
			if waiting != nil {
				require.Equal(t, result{node: "a"}, <-waiting)
				require.Zero(t, ns[1].Started())
			}
			_, by := c.hold(8)
			require.Equal(t, map[string]int{"a": 8}, by)
		})
	}
}

// Levels and weights come and go under load: no RPC fails, no stream is lost or
// miscounted, nothing reconnects that is listed all the time.
func TestListsChangeUnderLoad(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c", "d")
	c := e.dialWith(guarded(priorityFailover(longest)), ns...)
	held := c.load(ns, 4, 3, 2, 1)
	stop := c.watch(valid)
	callers := c.callers(3)
	for range 60 {
		eps := leastconntest.Endpoints(ns[1:]...)
		rand.Shuffle(len(eps), func(i, j int) { eps[i], eps[j] = eps[j], eps[i] })
		eps = append(eps[:rand.IntN(4)], ns[0].Endpoint())
		for i := range eps {
			eps[i] = lcresolver.SetPriority(eps[i], rand.Uint32N(3))
			eps[i] = lcresolver.SetWeight(eps[i], rand.Uint32N(3))
		}
		eps[len(eps)-1] = lcresolver.SetWeight(eps[len(eps)-1], 1+rand.Uint32N(1<<31))
		require.NoError(t, c.Update(eps...))
		callers.goOn()
	}
	stop()
	callers.stop()
	require.NoError(t, leastconntest.PingAll(held))
	c.counts(ns, 4, 3, 2, 1)
	e.conns(ns[:1], 1)
}
