package main

import (
	"context"
	"testing"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	v3orcaservicegrpc "github.com/cncf/xds/go/xds/service/orca/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
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
	for _, faults := range [][]fault{serverFaults, networkFaults, reportFaults, listFaults, channelFaults} {
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

// Each server tells each ledger once, however many channels of it listen, and again after it has refused to.
func TestReportsAreToldOncePerLedger(t *testing.T) {
	s, _, q := newEnv(t, 2, "plain", "tiered", "named", "named half")
	require.NoError(t, q.wait(t.Context(), "reports", s.checkReports))
	to := target{env: s, member: s.fleet.members[0]}
	f := find(reportFaults, "reports: unimplemented")
	require.NoError(t, f.begin(to, 0))
	require.NoError(t, leastconntest.WaitFor(t.Context(), "the end of reports", func() bool { return to.member.current().talk.open.Load() == 0 }))
	require.EqualError(t, s.checkReports(), "n0 has 0 streams of reports, want 2")
	require.NoError(t, f.end(to, 0))
	require.NoError(t, q.wait(t.Context(), "reports", s.checkReports))
}

// What faults make of a report.
func TestReportFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		roll     uint32
		inFlight float64
		sent     bool
	}{
		"reports: silent":        {},
		"reports: nothing to do": {0, 0, true},
		"reports: too much":      {20_007, 12, true},
		"reports: garbage":       {1, -1, true},
		"reports: absurd rate":   {1, 5, true},
		"reports: streams fail":  {},
		"reports: unimplemented": {},
	} {
		m := &member{fleet: &fleet{}}
		m.server.Store(&server{talk: newTalk(&m.fleet.reports)})
		require.NoError(t, find(reportFaults, name).begin(target{member: m}, tt.roll))
		sink := &reportSink{}
		stream := talkStream{sink, m.current().talk}
		r := &v3orcapb.OrcaLoadReport{NamedMetrics: map[string]float64{"in_flight": 5}}
		err := stream.Send(r)
		assert.Equal(t, name == "reports: streams fail" || name == "reports: unimplemented", err != nil, name)
		require.Equal(t, tt.sent, sink.last != nil, name)
		if tt.sent {
			assert.Equal(t, tt.inFlight, sink.last.GetNamedMetrics()["in_flight"], name)
		}
		m.says(nil)
		require.NoError(t, stream.Send(r))
		assert.Equal(t, 5.0, sink.last.GetNamedMetrics()["in_flight"], name)
	}
}

// reportSink keeps the last report.
type reportSink struct {
	v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsServer
	last *v3orcapb.OrcaLoadReport
}

func (s *reportSink) Send(r *v3orcapb.OrcaLoadReport) error {
	s.last = r
	return nil
}
