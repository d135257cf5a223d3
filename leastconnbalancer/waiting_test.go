package leastconnbalancer_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

func codeOf(err error) codes.Code { return status.Code(err) }

// once connects through d and does not try again for an hour.
func once(d *dialer) []grpc.DialOption {
	hour := backoff.Config{BaseDelay: time.Hour, Multiplier: 1, MaxDelay: time.Hour}
	return []grpc.DialOption{
		grpc.WithContextDialer(d.dial),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: hour, MinConnectTimeout: 20 * time.Second}),
	}
}

// RPCs that do not wait fail as soon as each node has failed once, with the last
// error; those before them, too.
func TestRPCsFailWithTheFirstRoundOfFailures(t *testing.T) {
	asRoundRobin(t, func(l *lab, cfg leastconntest.ChannelConfig) {
		ns := l.nodes("a", "b", "c")
		d := newDialer()
		d.shut(ns...)
		cfg.Endpoints, cfg.DialOptions = leastconntest.Endpoints(ns...), once(d)
		c := l.unused(cfg)
		early := l.async(func() (string, error) { return c.Unary(l.ctx) })
		waiting := l.async(func() (string, error) { return c.Unary(l.ctx, grpc.WaitForReady(true)) })
		for _, n := range ns {
			l.wait("a connection to "+n.Name(), func() bool { return d.attempts(n) == 1 })
		}
		for _, n := range ns {
			require.Equal(l, codes.DeadlineExceeded, c.brief(), "before %s has failed", n.Name())
			d.fail(n, errors.New("no way to "+n.Name()))
			d.open(n)
		}
		r := <-early
		require.Equal(l, codes.Unavailable, codeOf(r.err))
		last := "no way to c"
		if strings.Contains(cfg.ServiceConfig, roundrobin.Name) {
			last = "no way to " // any of them
		}
		require.ErrorContains(l, r.err, last)
		require.ErrorContains(l, c.unavailable(), last)
		for _, n := range ns {
			require.Equal(l, 1, d.attempts(n), "connections to %s", n.Name())
			d.fail(n, nil)
		}
		c.Conn().ResetConnectBackoff()
		require.NoError(l, (<-waiting).err)
	})
}

// The same holds over several levels: the last error, whatever its level.
func TestRPCsFailWhenAllLevelsHave(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	d := newDialer()
	d.shut(ns...)
	c := l.unused(leastconntest.ChannelConfig{Endpoints: levels(ns[:1], ns[1:2], ns[2:]), DialOptions: once(d)})
	early := l.async(func() (string, error) { return c.Unary(l.ctx) })
	for _, n := range []*leastconntest.Node{ns[0], ns[2], ns[1]} {
		l.wait("a connection to "+n.Name(), func() bool { return d.attempts(n) == 1 })
		require.Equal(t, codes.DeadlineExceeded, c.brief())
		d.fail(n, errors.New("no way to "+n.Name()))
		d.open(n)
	}
	r := <-early
	require.Equal(t, codes.Unavailable, codeOf(r.err))
	require.ErrorContains(t, r.err, "no way to b")
}

// RPCs that wait resume on the first node that is ready, on any level.
func TestWaitingRPCsResumeOnTheFirstReadyNode(t *testing.T) {
	for name, list := range map[string]func([]*leastconntest.Node) []resolver.Endpoint{
		"one level": func(ns []*leastconntest.Node) []resolver.Endpoint { return leastconntest.Endpoints(ns...) },
		"three":     func(ns []*leastconntest.Node) []resolver.Endpoint { return levels(ns[:1], ns[1:2], ns[2:]) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b", "c")
			for _, n := range ns {
				n.Stop()
			}
			cfg := quickly()
			cfg.Endpoints = list(ns)
			c := l.unused(cfg)
			c.Connect()
			c.waitState(connectivity.TransientFailure)
			for _, n := range []*leastconntest.Node{ns[2], ns[0], ns[1]} {
				var waiting []<-chan result
				for range 30 {
					waiting = append(waiting, l.async(func() (string, error) { return c.Unary(l.ctx, grpc.WaitForReady(true)) }))
				}
				require.Equal(t, codes.DeadlineExceeded, c.brief(grpc.WaitForReady(true)))
				require.ErrorContains(t, c.unavailable(), "connection refused")
				require.NoError(t, n.Restart())
				for _, w := range waiting {
					require.Equal(t, result{node: n.Name()}, <-w)
				}
				c.stop(n)
				c.waitState(connectivity.TransientFailure)
			}
		})
	}
}

const healthChecked = `{"loadBalancingConfig":[{"least_conn":{"failurePenalty":"0s"}}],"healthCheckConfig":{"serviceName":""}}`

func TestD54AllUnhealthy(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dialWith(leastconntest.ChannelConfig{ServiceConfig: healthChecked}, ns...)
	held := c.load(ns, 2, 1, 3)
	for _, n := range ns {
		n.SetServing(false)
	}
	c.waitState(connectivity.TransientFailure)
	fastest := time.Hour
	for range 20 {
		before := time.Now()
		err := c.unavailable()
		fastest = min(fastest, time.Since(before))
		require.ErrorContains(t, err, "health")
		require.ErrorContains(t, err, "NOT_SERVING")
	}
	require.Less(t, fastest, 50*time.Millisecond)

	waiting := l.async(func() (string, error) { return c.Unary(l.ctx, grpc.WaitForReady(true)) })
	require.Equal(t, codes.DeadlineExceeded, c.brief(grpc.WaitForReady(true)))
	require.NoError(t, leastconntest.PingAll(held))
	c.counts(ns, 2, 1, 3)
	ns[2].SetServing(true)
	require.Equal(t, result{node: "c"}, <-waiting)
	require.Equal(t, "c", c.unary())
	ns[0].SetServing(true)
	ns[1].SetServing(true)
	c.waitReady(ns...)
	_, by := c.hold(3)
	require.Equal(t, map[string]int{"a": 1, "b": 2}, by)
	c.counts(ns, 3, 3, 3)
	l.conns(ns, 1, 1, 1)
}

// A node whose handshake takes its time gets no RPC, waiting or not, and once it
// is there all that make up for it; a lower level gets none.
func TestD37SlowHandshake(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	d := newDialer()
	c := l.dialLevels(leastconntest.ChannelConfig{DialOptions: dialOptions(d)}, levels(ns[:2], ns[2:]), ns...)
	d.shut(ns[0])
	require.NoError(t, ns[0].Restart())
	l.wait("the channel reconnects to a", func() bool { return d.attempts(ns[0]) == 2 })
	for _, opts := range [][]grpc.CallOption{nil, {grpc.WaitForReady(true)}} {
		held, err := c.OpenTogether(l.ctx, 8, opts...)
		require.NoError(t, err)
		require.Equal(t, map[string]int{"b": 8}, leastconntest.Counts(held))
	}
	c.counts(ns, 0, 16, 0)
	d.open(ns[0])
	c.waitReady(ns[0])
	held, err := c.OpenTogether(l.ctx, 16)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"a": 16}, leastconntest.Counts(held))
	l.served(ns, 16, 16, 0)
}

// Nodes of all levels stop and start while RPCs run, waiting and not: each RPC
// ends, none hangs on a picker of the past.
func TestNothingHangsOnAStalePicker(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	p := &parent{}
	cfg := quickly()
	cfg.ServiceConfig = `{"loadBalancingConfig":[{"least_conn_parent":{"priorityFailover":"0.005s"}}]}`
	cfg.Endpoints = levels(ns[:2], ns[2:])
	c := l.dialParent(p, cfg, ns...)
	stop := c.watch(valid)
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	var callers sync.WaitGroup
	var waited, failed, answered atomic.Int64
	for i := range 16 {
		callers.Go(func() {
			for ctx.Err() == nil {
				rpc, end := context.WithTimeout(l.ctx, 20*time.Second)
				_, err := c.Unary(rpc, grpc.WaitForReady(i%2 == 0))
				end()
				switch codeOf(err) {
				case codes.OK:
					answered.Add(1)
				case codes.Unavailable:
					failed.Add(1)
				default:
					waited.Add(1)
					t.Errorf("an RPC that hangs: %v", err)
				}
			}
		})
	}
	for range 40 {
		n := ns[rand.IntN(len(ns))]
		switch rand.IntN(3) {
		case 0:
			n.GoAway()
		case 1:
			n.Stop()
		}
		if rand.IntN(2) == 0 {
			for _, n := range ns {
				require.NoError(t, n.Restart())
			}
			seen := answered.Load()
			l.wait("RPCs are answered", func() bool { return answered.Load() > seen+5 })
		}
	}
	for _, n := range ns {
		require.NoError(t, n.Restart())
	}
	cancel()
	callers.Wait()
	stop()
	require.Zero(t, waited.Load())
	require.Positive(t, failed.Load())
	require.Equal(t, p.picks.Load(), p.dones.Load())
	c.counts(ns, 0, 0, 0)
}
