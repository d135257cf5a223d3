package leastconnbalancer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// streams are RPCs of a fakeConn that are held, or wait.
type streams struct {
	c     *fakeConn
	held  map[string]int
	waits []context.Context
}

func (c *fakeConn) streams() *streams { return &streams{c: c, held: map[string]int{}} }

// open begins n streams, each with so much time, and returns what there is.
func (s *streams) open(n int, within time.Duration) string {
	s.c.tb.Helper()
	for range n {
		ctx, cancel := context.WithCancel(s.c.tb.Context())
		if within > 0 {
			ctx, cancel = context.WithTimeout(ctx, within)
		}
		s.c.tb.Cleanup(cancel)
		s.pick(ctx)
	}
	return s.String()
}

func (s *streams) pick(ctx context.Context) {
	s.c.tb.Helper()
	require.NoError(s.c.tb, ctx.Err(), "it has waited too long")
	res, err := s.c.picker().Pick(balancer.PickInfo{Ctx: ctx})
	if err == balancer.ErrNoSubConnAvailable {
		s.waits = append(s.waits, ctx)
		return
	}
	require.NoError(s.c.tb, err)
	s.held[res.SubConn.(*fakeSubConn).addr]++
	s.c.tb.Cleanup(func() { res.Done(balancer.DoneInfo{}) })
}

// wake lets those that wait pick again, as gRPC does for each picker.
func (s *streams) wake() string {
	waits := s.waits
	s.waits = nil
	for _, ctx := range waits {
		s.pick(ctx)
	}
	return s.String()
}

func (s *streams) String() string {
	got := []string{}
	for name, n := range s.held {
		got = append(got, fmt.Sprint(name, n))
	}
	slices.Sort(got)
	if len(s.waits) > 0 {
		got = append(got, fmt.Sprint("wait", len(s.waits)))
	}
	return strings.Join(got, " ")
}

var startupWaits = map[string]time.Duration{
	`{}`:                       500 * time.Millisecond,
	`{"startupWait":null}`:     500 * time.Millisecond,
	`{"startupWait":"1.5s"}`:   1500 * time.Millisecond,
	`{"startupWait":"0.001s"}`: time.Millisecond,
	`{"startupWait":"60s"}`:    time.Minute,
}

func TestBurstWaitsForThoseThatConnect(t *testing.T) {
	for config, wait := range startupWaits {
		inFakeTime(t, config, func(t *testing.T, c *fakeConn) {
			c.list(config, "abcd")
			s := c.streams()
			require.Equal(t, "wait12", s.open(12, 0))
			c.connect("a")
			require.Equal(t, "a3 wait9", s.wake())
			c.report("c", connecting, failure)
			require.Equal(t, "a4 wait8", s.wake(), "c has failed")
			passes(wait - 1)
			require.Equal(t, "a4 wait8", s.wake())
			before, _ := c.published()
			passes(1)
			after, _ := c.published()
			require.Equal(t, before+1, after, "the end of the time wakes them")
			require.Equal(t, "a12", s.wake())
		})
	}
}

func TestBurstLandsLevel(t *testing.T) {
	inFakeTime(t, "ten", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "abcdefghij")
		s := c.streams()
		s.open(100, 0)
		for _, name := range "abcdefghij" {
			c.connect(string(name))
			passes(10 * time.Millisecond)
			s.wake()
		}
		require.Equal(t, "a10 b10 c10 d10 e10 f10 g10 h10 i10 j10", s.String())
	})
}

func TestZeroStartupWait(t *testing.T) {
	inFakeTime(t, "0s", func(t *testing.T, c *fakeConn) {
		c.list(`{"startupWait":"0s"}`, "ab")
		c.connect("a")
		require.Equal(t, "a9", c.streams().open(9, 0))
		c.list(`{}`, "ab")
		require.Equal(t, "a9", c.streams().open(9, 0), "nor is b new now")
	})
	inFakeTime(t, "at run time", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ab")
		c.connect("a")
		s := c.streams()
		require.Equal(t, "a1 wait1", s.open(2, 0))
		passes(100 * time.Millisecond)
		c.list(`{"startupWait":"0.2s"}`, "ab")
		require.Equal(t, "a1 wait1", s.wake())
		passes(100 * time.Millisecond)
		require.Equal(t, "a2", s.wake())
	})
}

func TestSerialCallsDoNotWait(t *testing.T) {
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "abc")
		c.connect("b")
		for range 20 {
			require.Equal(t, "b", c.at())
		}
		c.connect("a")
		require.Contains(t, "ab", c.at())
	})
}

// What joins a list in use, or reconnects beside others, is not waited for; after all
// connections are lost, all are.
func TestWhoIsWaitedFor(t *testing.T) {
	inFakeTime(t, "newcomers", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ab")
		c.connect("ab")
		c.list(`{}`, "abcd")
		require.Equal(t, "a4 b4", c.streams().open(8, 0))
		c.report("a", idle, connecting)
		require.Equal(t, "b2", c.streams().open(2, 0))
	})
	inFakeTime(t, "outage", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "abc")
		c.connect("abc")
		passes(time.Minute)
		c.report("c", connecting, failure)
		c.report("a", idle, connecting)
		c.report("b", idle, connecting)
		s := c.streams()
		require.Equal(t, "wait4", s.open(4, 0))
		passes(100 * time.Millisecond)
		c.report("b", ready)
		require.Equal(t, "b2 wait2", s.wake())
		passes(400*time.Millisecond - 1)
		require.Equal(t, "b2 wait2", s.wake())
		passes(1)
		require.Equal(t, "b4", s.wake())
	})
	inFakeTime(t, "another list", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ab")
		c.connect("ab")
		c.list(`{}`, "cde")
		c.connect("d")
		require.Equal(t, "d1 wait2", c.streams().open(3, 0))
	})
	inFakeTime(t, "draining", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "abC")
		c.connect("a")
		s := c.streams()
		require.Equal(t, "a1 wait1", s.open(2, 0))
		c.list(`{}`, "aBC")
		require.Equal(t, "a2", s.wake())
	})
	inFakeTime(t, "leaving", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ab")
		c.connect("a")
		s := c.streams()
		require.Equal(t, "a1 wait1", s.open(2, 0))
		c.list(`{}`, "a")
		require.Equal(t, "a2", s.wake())
	})
	inFakeTime(t, "flapping", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ab")
		c.connect("a")
		s := c.streams()
		require.Equal(t, "a1 wait1", s.open(2, 0))
		for range 5 {
			passes(100 * time.Millisecond)
			c.report("a", idle, connecting, ready)
		}
		passes(10 * time.Millisecond)
		require.Equal(t, "a2", s.wake(), "whatever a does, the time of b is over")
	})
	inFakeTime(t, "another key", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ab")
		c.connect("a")
		require.Equal(t, "a1 wait1", c.streams().open(2, 0))
		c.list(`{"resourceKey":"`+t.Name()+`"}`, "ab")
		s := c.streams()
		require.Equal(t, "a1 wait1", s.open(2, 0))
		c.connect("b")
		require.Equal(t, "a1 b1", s.wake())
	})
}

// The level in use is waited for, each from when it began to connect.
func TestStartupOfLevels(t *testing.T) {
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.list(`{"priorityFailover":"0.1s"}`, "ab", "cd")
		c.connect("c")
		s := c.streams()
		require.Equal(t, "wait4", s.open(4, 0))
		passes(100 * time.Millisecond)
		require.Equal(t, "c2 wait2", s.wake())
		c.connect("a")
		passes(10 * time.Millisecond)
		require.Equal(t, "a1 c2 wait1", s.wake(), "one waits for b now, nobody for d")
		passes(390*time.Millisecond - 1)
		require.Equal(t, "a1 c2 wait1", s.wake())
		passes(1)
		require.Equal(t, "a2 c2", s.wake())
	})
}

func TestDeadlineThatIsNearDoesNotWait(t *testing.T) {
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ab")
		c.connect("a")
		s := c.streams()
		require.Equal(t, "a2", s.open(2, 200*time.Millisecond))
		require.Equal(t, "a2 wait1", s.open(1, time.Second))
	})
}

// Each picker wakes all that wait: there is one in 10 ms for those that connect.
func TestEndpointsThatConnectWakeTogether(t *testing.T) {
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "abcdefghij")
		c.connect("a")
		s := c.streams()
		require.Equal(t, "a1 wait9", s.open(10, 0))
		passes(10 * time.Millisecond)
		before, _ := c.published()
		for _, name := range "bcdefgh" {
			c.connect(string(name))
			passes(time.Millisecond)
		}
		passes(10 * time.Millisecond)
		after, _ := c.published()
		require.LessOrEqual(t, after-before, 2)
		require.Equal(t, "a1 b1 c1 d1 e1 f1 g1 h1 wait2", s.wake())
	})
}

const patientStart = `{"startupWait":"60s"}`

// starting is a channel that has not connected, and does not to the nodes that are
// silent; and its dialer.
func (e *env) starting(nodes []*leastconntest.Node, silent ...*leastconntest.Node) (*channel, *dialer) {
	d := newDialer()
	d.shut(silent...)
	return e.unused(leastconntest.ChannelConfig{
		ServiceConfig: selecting(patientStart), Endpoints: leastconntest.Endpoints(nodes...), DialOptions: d.options(patience),
	}), d
}

// together opens n streams at once and returns where they went.
func (c *channel) together(n int) map[string]int {
	c.env.Helper()
	streams, err := c.OpenTogether(c.env.ctx, n)
	require.NoError(c.env, err)
	return leastconntest.Counts(streams)
}

// beginTogether opens n streams at once, and waits until all but some wait for nodes
// that connect.
func (c *channel) beginTogether(n, reserved int) <-chan map[string]int {
	c.env.Helper()
	done := make(chan map[string]int, 1)
	go func() {
		streams, err := c.OpenTogether(c.env.ctx, n)
		assert.NoError(c.env, err)
		done <- leastconntest.Counts(streams)
	}()
	c.env.wait("RPCs wait", func() bool {
		s := c.snapshot()
		return s.InFlight == int64(n) && s.Reserved == int64(reserved)
	})
	return done
}

// Streams that a channel is opened for lie level over the nodes that answer.
func TestStreamsAtOnceAreLevel(t *testing.T) {
	all := names(10)
	t.Run("all answer", func(t *testing.T) {
		e := parallelEnv(t)
		c, _ := e.starting(e.nodes(all...))
		by := c.together(100)
		for _, name := range all {
			require.Equal(t, 10, by[name], "%v", by)
		}
	})
	t.Run("one is silent", func(t *testing.T) {
		e := parallelEnv(t)
		ns := e.nodes(all...)
		c, d := e.starting(ns, ns[3])
		defer d.open(ns[3])
		got := c.beginTogether(100, 10)
		require.NoError(t, c.UpdateConfig(selecting(`{"startupWait":"0s"}`), leastconntest.Endpoints(ns...)...))
		by := <-got
		require.Len(t, by, 9)
		for name, n := range by {
			require.InDelta(t, 100.0/9, n, 1, "%s of %v", name, by)
		}
	})
	t.Run("one fails", func(t *testing.T) {
		e := parallelEnv(t)
		ns := e.nodes(all...)
		c, d := e.starting(ns, ns[3])
		got := c.beginTogether(100, 10)
		d.fail(errors.New("no route"), ns[3])
		d.open(ns[3])
		by := <-got
		require.Len(t, by, 9)
		for name, n := range by {
			require.InDelta(t, 100.0/9, n, 1, "%s of %v", name, by)
		}
	})
	t.Run("near and far", func(t *testing.T) {
		e := parallelEnv(t)
		ns := e.nodes("near", "far")
		cfg := leastconntest.ChannelConfig{ServiceConfig: selecting(patientStart)}
		for i, delay := range []time.Duration{2 * time.Millisecond, 20 * time.Millisecond} {
			p := e.proxied(ns[i])
			p.SetDelay(delay)
			cfg.Endpoints = append(cfg.Endpoints, p.Endpoint())
		}
		require.Equal(t, map[string]int{"near": 50, "far": 50}, e.unused(cfg).together(100))
	})
}

// After idleness the first list comes again.
func TestStreamsAtOnceAfterIdleness(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes(names(4)...)
	c := e.unused(leastconntest.ChannelConfig{
		ServiceConfig: selecting(patientStart), Endpoints: leastconntest.Endpoints(ns...),
		DialOptions: []grpc.DialOption{grpc.WithIdleTimeout(50 * time.Millisecond)},
	})
	c.unary()
	c.waitState(idle)
	require.Equal(t, map[string]int{"n0": 5, "n1": 5, "n2": 5, "n3": 5}, c.together(20))
}

// After an outage in which all connections were lost streams lie level.
func TestStreamsAtOnceAfterAnOutage(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes(names(4)...)
	c, d := e.starting(ns)
	c.Connect()
	c.waitReady(ns...)
	d.shut(ns...)
	for _, n := range ns {
		n.GoAway()
		e.wait(n.Name()+" is lost", func() bool { return !c.ready(n) })
	}
	d.open(ns[2])
	got := c.beginTogether(20, 15)
	d.open(ns[0], ns[1], ns[3])
	require.Equal(t, map[string]int{"n0": 5, "n1": 5, "n2": 5, "n3": 5}, <-got)
}

// One of ten never answers: no call whose deadline is 200 ms away when it begins is
// over before it is served.
func TestNoDeadlineIsSpentWaiting(t *testing.T) {
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "abcdefghij")
		c.connect("abcdefghi")
		s := c.streams()
		for range 100 {
			s.open(1, 200*time.Millisecond)
			passes(6 * time.Millisecond)
			s.wake()
		}
		require.Empty(t, s.waits)
		require.Zero(t, s.held["j"])
		require.Equal(t, 9, len(s.held))
	})
}
