package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// newEnv starts n servers and the channels of those names, and waits until they are ready.
func newEnv(t *testing.T, n int, names ...string) (*env, *attempts, *quiesce) {
	t.Helper()
	f, err := startFleet(n)
	t.Cleanup(f.close)
	require.NoError(t, err)
	s, a := &env{fleet: f}, newAttempts()
	for _, spec := range channelSpecs {
		for _, name := range names {
			if spec.name != name {
				continue
			}
			c, err := open(spec, f, a)
			require.NoError(t, err)
			t.Cleanup(func() { c.close() })
			s.channels = append(s.channels, c)
		}
	}
	require.Len(t, s.channels, len(names))
	q := &quiesce{env: s, attempts: a, report: newReport(), patience: leastconntest.DefaultTimeout}
	require.NoError(t, q.wait(t.Context(), "all to be ready", q.ready))
	return s, a, q
}

// Whatever fault begins and ends, all is well afterwards.
func TestEveryFaultIsOver(t *testing.T) {
	s, _, q := newEnv(t, 2, "tiered", "named")
	for _, faults := range [][]fault{serverFaults, networkFaults, listFaults, channelFaults} {
		for _, f := range faults {
			for roll := range uint32(2) {
				to := target{env: s, member: s.fleet.members[roll], channel: s.channels[0]}
				require.NoError(t, f.begin(to, roll), f.name)
				if f.end != nil {
					require.NoError(t, f.end(to, roll), f.name)
				}
			}
		}
	}
	require.NoError(t, q.waitRecovered(t.Context()))
}

func TestAgeingServerAgesConnections(t *testing.T) {
	s, _, q := newEnv(t, 1, "plain")
	server := s.fleet.members[0].current()
	require.NoError(t, server.age(true))
	require.NoError(t, leastconntest.WaitFor(t.Context(), "three connections", func() bool { return server.ageing.Conns() >= 3 }))
	require.NoError(t, server.age(false))
	require.NoError(t, q.wait(t.Context(), "one connection", q.connections))
	require.NoError(t, leastconntest.WaitFor(t.Context(), "it to be to the plain node", func() bool { return server.plain.OpenConns() == 1 }))
}

func TestListSaysWhatItWasTold(t *testing.T) {
	s, _, _ := newEnv(t, 4, "named half")
	c := s.channels[0]
	l := newList()
	eps := l.endpoints(c.spec, s.fleet)
	require.Len(t, eps, 2, "each second member")
	assert.Equal(t, []string{"n0", "n2"}, []string{lcresolver.ID(eps[0]), lcresolver.ID(eps[1])})
	assert.Equal(t, []uint32{0, 0}, []uint32{lcresolver.Priority(eps[0]), lcresolver.Priority(eps[1])})
	assert.EqualValues(t, 1, lcresolver.Weight(eps[0]))

	l.out[0], l.weights[2], l.priorities[2], l.dual[2] = true, 0, 5, 4
	eps = l.endpoints(c.spec, s.fleet)
	require.Len(t, eps, 1)
	assert.EqualValues(t, 0, lcresolver.Weight(eps[0]))
	assert.EqualValues(t, 5, lcresolver.Priority(eps[0]))
	server := s.fleet.members[2].current()
	assert.Equal(t, []resolver.Address{{Addr: server.direct}, {Addr: server.addr}}, eps[0].Addresses)
	l.dual[2] = 5
	assert.Equal(t, []resolver.Address{{Addr: server.addr}, {Addr: server.direct}}, l.endpoints(c.spec, s.fleet)[0].Addresses)
	l.empty = true
	assert.Empty(t, l.endpoints(c.spec, s.fleet))
	assert.NotNil(t, l.endpoints(c.spec, s.fleet), "an empty list is one, too")
}

// A replaced server has another address, and what the old one's address was is still known.
func TestReplacedServer(t *testing.T) {
	s, _, q := newEnv(t, 1, "plain")
	m := s.fleet.members[0]
	before := *m.current()
	require.NoError(t, replace(target{env: s, member: m}, 0))
	require.NotEqual(t, before.name, m.current().name)
	for _, old := range []string{before.addr, before.direct} {
		assert.Equal(t, owner{"n0", before.name}, s.fleet.owner(old))
		assert.False(t, s.fleet.claim(owner{"n1", "n1@there"}, "elsewhere", old))
	}
	assert.Equal(t, owner{"n0", m.current().name}, s.fleet.owner(m.current().addr))
	assert.Zero(t, s.fleet.owner("elsewhere"))
	require.NoError(t, q.waitRecovered(t.Context()))
}

// drive returns a driver of the only channel, whose RPCs end with the test.
func drive(t *testing.T, s *env, a *attempts) *driver {
	ctx, cancel := context.WithCancel(t.Context())
	d := &driver{ctx: ctx, channel: s.channels[0], attempts: a, clock: newClock(), report: newReport()}
	t.Cleanup(d.running.Wait)
	t.Cleanup(cancel)
	return d
}

func TestAttemptsKnowWhereTheyAre(t *testing.T) {
	s, a, q := newEnv(t, 1, "named")
	d := drive(t, s, a)
	d.clock.begin()
	at := location{namedKey, "n0"}
	require.NoError(t, d.play(t.Context(), 0, []call{
		{kind: "bidirectional, held", until: moment{1, 0}},
		{kind: "bidirectional, abandoned", until: moment{1, 0}},
		{kind: "client-streaming, abandoned", until: moment{1, 0}, read: true},
	}))
	require.NoError(t, leastconntest.WaitFor(t.Context(), "three RPCs that are open", func() bool { return d.later.Load() == 3 }))
	q.drivers = []*driver{d}
	require.NoError(t, q.check(t.Context(), false))
	m := a.mark()
	assert.Len(t, m.connected[at], 3)
	assert.Len(t, m.connected[location{key: namedKey}], 3)
	assert.Equal(t, map[string]int{"n0": 2}, m.abandoned)
	assert.Equal(t, 1, s.fleet.served()["n0"])

	d.clock.begin()
	require.NoError(t, q.check(t.Context(), true))
	assert.Zero(t, a.count())
	assert.Equal(t, 1, d.report.rpcs["client-streaming, abandoned"]["OK"], "it was read to its end")
	assert.Equal(t, 1, d.report.rpcs["bidirectional, abandoned"]["OK"]+d.report.rpcs["bidirectional, abandoned"]["Canceled"])
}

// gRPC begins attempts that it drops without a word when it cannot pick.
func TestAttemptsThatWereNeverMade(t *testing.T) {
	s, a, q := newEnv(t, 1, "retrying")
	s.fleet.members[0].current().stop()
	require.NoError(t, q.wait(t.Context(), "the channel to fail", func() error {
		ctx, r := withRPC(t.Context())
		defer a.over(r)
		if _, err := s.channels[0].current().Unary(ctx); err == nil {
			return context.Canceled
		}
		return nil
	}))
	d := drive(t, s, a)
	d.soon.Add(1)
	d.make(call{kind: "unary"})
	assert.Equal(t, 1, d.report.rpcs["unary"]["Unavailable"])
	assert.Zero(t, a.count())
	assert.Positive(t, a.unused)
	assert.Positive(t, a.retries)
}

// A call is cut short as its kind has it.
func TestCallsEnd(t *testing.T) {
	s, a, _ := newEnv(t, 1, "plain")
	s.fleet.members[0].current().each(func(n *leastconntest.Node) { n.HoldUnary(true) })
	d := drive(t, s, a)
	ends := map[string]string{
		"unary":                       "DeadlineExceeded", // which all have that are to be over soon
		"unary, waits for ready":      "DeadlineExceeded",
		"unary, cancelled":            "Canceled",
		"unary, deadline":             "DeadlineExceeded",
		"client-streaming":            "OK",
		"client-streaming, cancelled": "Canceled",
		"client-streaming, deadline":  "DeadlineExceeded",
		"server-streaming":            "OK",
		"server-streaming, deadline":  "DeadlineExceeded",
		"bidirectional":               "OK",
		"bidirectional, cancelled":    "Canceled",
		"bidirectional, deadline":     "DeadlineExceeded",
	}
	for kind := range ends {
		d.soon.Add(1)
		d.running.Go(func() { d.make(call{kind: kind, after: 100 * time.Millisecond, messages: 3, size: 100}) })
	}
	d.running.Wait()
	for kind, want := range ends {
		assert.Equal(t, map[string]int{want: 1}, d.report.rpcs[kind], kind)
	}
	assert.Zero(t, d.soon.Load())
}
