package leastconnbalancer_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/reports"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// fakeProducer stands for a stream of reports.
type fakeProducer struct {
	interval time.Duration
	report   reports.Report
}

// Build implements balancer.ProducerBuilder, for real channels.
func (p *fakeProducer) Build(any) (balancer.Producer, func()) { return p, func() {} }

// listenInTest is how connections listen in this package's tests: by a stream that only the balancer
// knows of.
func listenInTest(conn balancer.SubConn, interval time.Duration, report reports.Report) func() {
	_, stop := conn.GetOrBuildProducer(&fakeProducer{interval, report})
	return stop
}

func (s *fakeSubConn) GetOrBuildProducer(pb balancer.ProducerBuilder) (balancer.Producer, func()) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	p := pb.(*fakeProducer)
	s.producers = append(s.producers, p)
	return p, func() {
		s.conn.mu.Lock()
		defer s.conn.mu.Unlock()
		s.producers = slices.DeleteFunc(s.producers, func(x *fakeProducer) bool { return x == p })
	}
}

// listening says which connections listen, and how often they are told.
func (c *fakeConn) listening() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sc := range c.subConns {
		for _, p := range sc.producers {
			all = append(all, fmt.Sprint(sc.addr, " ", p.interval))
		}
	}
	return all
}

// hears checks who listens after so long.
func (c *fakeConn) hears(after time.Duration, want ...string) {
	c.tb.Helper()
	passes(after)
	require.Equal(c.tb, want, c.listening())
}

const everySecond = `{"reports":{"interval":"1s"}}`

// Connections listen while they are READY and the configuration has it.
func TestListeningToReports(t *testing.T) {
	second := time.Second
	for name, steps := range map[string]func(*fakeConn){
		"off": func(c *fakeConn) {
			c.list(`{}`, "a")
			c.connect("a")
			c.hears(time.Hour)
		},
		"on and off": func(c *fakeConn) {
			c.list(everySecond, "ab")
			c.hears(time.Hour)
			c.connect("ab")
			c.hears(second, "a 1s", "b 1s")
			c.list(`{"reports":{"interval":"500ms"}}`, "ab")
			c.hears(second, "a 500ms", "b 500ms")
			c.list(`{"reports":{"interval":"500ms"},"maxInFlight":3}`, "ab")
			c.hears(0, "a 500ms", "b 500ms")
			c.list(`{}`, "ab")
			c.hears(0)
		},
		"reconnects": func(c *fakeConn) {
			c.list(everySecond, "a")
			c.connect("a")
			c.hears(second, "a 1s")
			c.report("a", idle)
			c.hears(0)
			c.report("a", connecting)
			c.hears(time.Hour)
			c.report("a", ready)
			c.hears(second, "a 1s")
			c.report("a", idle, connecting, failure)
			c.hears(time.Hour)
		},
		"leaves": func(c *fakeConn) {
			c.list(everySecond, "ab")
			c.connect("ab")
			c.hears(second, "a 1s", "b 1s")
			_, done := c.pick()
			_, done2 := c.pick()
			c.list(everySecond, "c")
			c.hears(0) // though RPCs keep the connections
			done(balancer.DoneInfo{})
			done2(balancer.DoneInfo{})
			c.connect("c")
			c.hears(second, "c 1s")
		},
		"another resource key": func(c *fakeConn) {
			c.list(everySecond, "a")
			c.connect("a")
			c.hears(second, "a 1s")
			other := `{"resourceKey":"` + c.tb.Name() + `","reports":{"interval":"1s"}}`
			c.list(other, "a")
			c.hears(0) // it is another endpoint, to be asked at another time
			c.hears(second, "a 1s")
		},
		"closed": func(c *fakeConn) {
			c.list(everySecond, "a")
			c.connect("a")
			c.hears(second, "a 1s")
			c.balancer.Close()
			c.hears(0)
		},
		"closed before": func(c *fakeConn) {
			c.list(everySecond, "a")
			c.connect("a")
			c.balancer.Close()
			c.hears(time.Hour)
		},
	} {
		inFakeTime(t, name, func(_ *testing.T, c *fakeConn) { steps(c) })
	}
}

// Of two channels that share their load one listens; the other one takes over when it goes.
func TestOneChannelListens(t *testing.T) {
	inFakeTime(t, "two channels", func(t *testing.T, c *fakeConn) {
		other := newFakeConn(t)
		other.target = c.target
		other.build(balancer.Get(leastconnbalancer.Name))
		t.Cleanup(other.balancer.Close)
		c.list(everySecond, "ab")
		other.list(`{"reports":{"interval":"1s"}}`, "ab")
		c.connect("a")
		other.connect("ab")
		c.connect("b")
		c.hears(time.Second, "a 1s")
		other.hears(0, "b 1s")
		c.report("a", connectivity.Idle)
		other.hears(time.Second, "a 1s", "b 1s")
		c.report("a", connecting, ready)
		c.hears(time.Hour)
		other.balancer.Close()
		c.hears(time.Second, "a 1s", "b 1s")
		require.Empty(t, other.listening())
	})
}

// A report's stream takes room, and a server that allows so few streams that nothing else might run is
// not asked.
func TestReportsTakeAStream(t *testing.T) {
	for limit, others := range map[uint32]int64{3: 1, 2: 0} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			e := parallelEnv(t)
			n := e.node("a", grpc.MaxConcurrentStreams(limit))
			c := e.dialWith(leastconntest.ChannelConfig{ServiceConfig: selecting(`{"reports":{"interval":"100ms"}}`)}, n)
			c.hold(2)
			if others == 0 {
				time.Sleep(150 * time.Millisecond) // in which a stream that is wrong would begin
			}
			e.wait("the reports are counted", func() bool { return c.of(n.Addr()).Members[0].Connection.Others == others })
			rpcs := c.queue(1)
			require.NoError(t, c.UpdateConfig(selecting(`{}`), n.Endpoint()))
			if limit == 3 {
				require.NoError(t, (<-rpcs[0]).err)
			}
			require.Zero(t, c.of(n.Addr()).Members[0].Connection.Others)
		})
	}
}

// A server that allows more streams than before is asked from then on, and one that allows fewer no more.
func TestReportsFollowTheLimit(t *testing.T) {
	e := parallelEnv(t)
	n := e.node("a", grpc.MaxConcurrentStreams(2))
	c := e.dialWith(leastconntest.ChannelConfig{ServiceConfig: selecting(`{"reports":{"interval":"100ms"}}`)}, n)
	c.hold(1)
	others := func() int64 { return c.of(n.Addr()).Members[0].Connection.Others }
	for _, limit := range []uint32{5, 2, 3} {
		n.SetStreamLimit(limit)
		want := int64(0)
		if limit >= 3 {
			want = 1
		}
		e.wait(fmt.Sprint("reports by a limit of ", limit), func() bool { return others() == want })
	}
}

// A connection that often begins and ends to listen keeps nothing of that.
func TestEndedReportsAreForgotten(t *testing.T) {
	e := newEnv(t)
	n := e.node("a")
	c := e.dial(n)
	var ended []weak.Pointer[fakeProducer]
	for range 3 {
		producers := make(chan weak.Pointer[fakeProducer], 1)
		reports.Register(func(conn balancer.SubConn, interval time.Duration, report reports.Report) func() {
			p := &fakeProducer{interval, report}
			_, stop := conn.GetOrBuildProducer(p)
			producers <- weak.Make(p)
			return stop
		})
		require.NoError(t, c.UpdateConfig(selecting(`{"reports":{"interval":"100ms"}}`), n.Endpoint()))
		ended = append(ended, <-producers)
		require.NoError(t, c.UpdateConfig(selecting(`{}`), n.Endpoint()))
	}
	reports.Register(listenInTest)
	for _, p := range ended {
		e.wait("what listened is collected", func() bool {
			runtime.GC()
			return p.Value() == nil
		})
	}
	require.Equal(t, 1, n.Conns())
}

// The balancer begins and ends while its connections listen.
func TestReportsWhileAllChanges(t *testing.T) {
	e := newEnv(t)
	ns := e.nodes("a", "b")
	c := e.dialWith(leastconntest.ChannelConfig{ServiceConfig: selecting(`{"reports":{"interval":"100ms"}}`)}, ns...)
	w := c.callers(2)
	for i := range 40 {
		switch i % 4 {
		case 0:
			c.update(ns[1])
		case 1:
			ns[1].GoAway()
		case 2:
			c.update(ns...)
		case 3:
			require.NoError(t, c.UpdateConfig(selecting(fmt.Sprintf(`{"reports":{"interval":"%dms"}}`, 100+i)), leastconntest.Endpoints(ns...)...))
		}
		w.goOn()
	}
	w.stop()
}
