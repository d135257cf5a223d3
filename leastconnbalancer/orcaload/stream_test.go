package orcaload

import (
	"context"
	"io"
	"math"
	"testing"
	"testing/synctest"
	"time"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	v3orcaservicegrpc "github.com/cncf/xds/go/xds/service/orca/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What a report tells.
func TestRead(t *testing.T) {
	type m = map[string]float64
	for name, tt := range map[string]struct {
		report   *v3orcapb.OrcaLoadReport
		inFlight int64
		rps      float64
		ok       bool
	}{
		"named":          {&v3orcapb.OrcaLoadReport{NamedMetrics: m{"in_flight": 7}, RpsFractional: 2.5}, 7, 2.5, true},
		"ppm":            {&v3orcapb.OrcaLoadReport{Utilization: m{"in_flight_ppm": 0.000123}}, 123, -1, true},
		"all of ppm":     {&v3orcapb.OrcaLoadReport{Utilization: m{"in_flight_ppm": 1}}, 1_000_000, -1, true},
		"named wins":     {&v3orcapb.OrcaLoadReport{NamedMetrics: m{"in_flight": 7}, Utilization: m{"in_flight_ppm": 0.1}}, 7, -1, true},
		"none in flight": {report(0), 0, -1, true},
		"rounded":        {report(2.5000001), 3, -1, true},
		"most":           {report(math.MaxInt32), math.MaxInt32, -1, true},
		"nothing":        {&v3orcapb.OrcaLoadReport{RpsFractional: 5, CpuUtilization: 1}, 0, 0, false},
		"nil":            {nil, 0, 0, false},
		"NaN":            {report(math.NaN()), 0, 0, false},
		"negative":       {report(-1), 0, 0, false},
		"nearly none":    {report(-5e-324), 0, 0, false},
		"infinite":       {report(math.Inf(1)), 0, 0, false},
		"huge":           {report(1e300), 0, 0, false},
		"too many":       {report(1 << 31), 0, 0, false},
		"NaN and ppm":    {&v3orcapb.OrcaLoadReport{NamedMetrics: m{"in_flight": math.NaN()}, Utilization: m{"in_flight_ppm": 0.1}}, 0, 0, false},
		"huge ppm":       {&v3orcapb.OrcaLoadReport{Utilization: m{"in_flight_ppm": 1e300}}, 0, 0, false},
		"rate NaN":       {&v3orcapb.OrcaLoadReport{NamedMetrics: m{"in_flight": 7}, RpsFractional: math.NaN()}, 7, -1, true},
		"rate negative":  {&v3orcapb.OrcaLoadReport{NamedMetrics: m{"in_flight": 7}, RpsFractional: -3}, 7, -1, true},
		"rate infinite":  {&v3orcapb.OrcaLoadReport{NamedMetrics: m{"in_flight": 7}, RpsFractional: math.Inf(1)}, 7, -1, true},
		"rate absurd":    {&v3orcapb.OrcaLoadReport{NamedMetrics: m{"in_flight": 7}, RpsFractional: 1.1e9}, 7, -1, true},
	} {
		inFlight, rps, ok := read(tt.report)
		require.Equal(t, tt.ok, ok, name)
		if ok {
			require.Equal(t, tt.inFlight, inFlight, name)
			require.Equal(t, tt.rps, rps, name)
		}
	}
}

// script is a server: what each of its streams says, until it ends.
type script func(stream int, say func(inFlight float64)) error

// StreamCoreMetrics implements v3orcaservicegrpc.OpenRcaServiceClient.
func (p *player) StreamCoreMetrics(ctx context.Context, _ *v3orcaservicegrpc.OrcaLoadReportRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[v3orcapb.OrcaLoadReport], error) {
	s := &fakeStream{ctx: ctx, said: make(chan *v3orcapb.OrcaLoadReport), end: make(chan error, 1)}
	n := len(p.begun)
	p.begun = append(p.begun, time.Since(p.start))
	go func() {
		s.end <- p.script(n, func(inFlight float64) {
			select {
			case s.said <- report(inFlight):
			case <-ctx.Done():
			}
		})
	}()
	return s, nil
}

// player has a listener hear a script, in a bubble's time.
type player struct {
	script script
	start  time.Time
	begun  []time.Duration // streams
	got    []int64
}

type fakeStream struct {
	grpc.ServerStreamingClient[v3orcapb.OrcaLoadReport] // nil; embedded because the interface demands it

	ctx  context.Context
	said chan *v3orcapb.OrcaLoadReport
	end  chan error
}

func (s *fakeStream) Recv() (*v3orcapb.OrcaLoadReport, error) {
	select {
	case r := <-s.said:
		return r, nil
	case err := <-s.end:
		return nil, err
	case <-s.ctx.Done():
		return nil, status.FromContextError(s.ctx.Err()).Err()
	}
}

// play lets a listener with an interval of 10 s hear the script for so long.
func play(t *testing.T, d time.Duration, s script, check func(t *testing.T, p *player)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &player{script: s, start: time.Now()}
		l := &listener{interval: 10 * time.Second, report: func(inFlight int64, _ float64) { p.got = append(p.got, inFlight) }}
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		l.run(ctx, p)
		check(t, p)
		time.Sleep(2 * time.Hour) // what the script has left to say
	})
}

// Of reports that come much faster than asked for some are passed over; of those that come twice as fast none is,
// since others may ask for that.
func TestFlood(t *testing.T) {
	play(t, time.Minute-1, func(_ int, say func(float64)) error {
		for i := range 2000 {
			say(float64(i))
			time.Sleep(50 * time.Millisecond)
		}
		return nil
	}, func(t *testing.T, p *player) { require.Len(t, p.got, 24) })
	play(t, time.Minute-1, func(_ int, say func(float64)) error {
		for i := range 12 {
			say(float64(i))
			time.Sleep(5 * time.Second)
		}
		return nil
	}, func(t *testing.T, p *player) { require.Len(t, p.got, 12) })
}

// Of late reports that come at once the last one counts, soon after the first. What a stream has said is over
// when it ends.
func TestLateReports(t *testing.T) {
	play(t, time.Hour, func(stream int, say func(float64)) error {
		if stream > 0 {
			time.Sleep(2 * time.Hour)
		}
		say(1)
		time.Sleep(time.Minute)
		for i := range 5 {
			say(float64(2 + i))
		}
		time.Sleep(time.Minute)
		say(7)
		say(8)
		return io.EOF
	}, func(t *testing.T, p *player) { require.Equal(t, []int64{1, 2, 6, 7}, p.got) })
}

// Garbage before a report does not hold it up.
func TestReportAfterGarbage(t *testing.T) {
	play(t, time.Second, func(_ int, say func(float64)) error {
		say(-1)
		say(3)
		say(4)
		time.Sleep(time.Hour)
		return nil
	}, func(t *testing.T, p *player) { require.Equal(t, []int64{3}, p.got) })
}

// A stream that fails is begun again, ever less often; where it has reported, within an interval.
func TestStreamsAfterFailures(t *testing.T) {
	play(t, time.Hour, func(int, func(float64)) error { return status.Error(codes.Unavailable, "") }, func(t *testing.T, p *player) {
		require.InDelta(t, 38, len(p.begun), 8) // 1 s, 1.6 s and so on, and then every 2 min
		require.Less(t, p.begun[1], 2*time.Second)
	})
	play(t, time.Hour, func(_ int, say func(float64)) error {
		say(1)
		return io.EOF
	}, func(t *testing.T, p *player) {
		require.Greater(t, len(p.begun), 500)
		for i := range len(p.begun) - 1 {
			require.LessOrEqual(t, p.begun[i+1]-p.begun[i], 10*time.Second)
		}
	})
	play(t, time.Hour, func(stream int, say func(float64)) error {
		if stream == 8 {
			say(1)
		}
		return io.EOF
	}, func(t *testing.T, p *player) {
		require.Less(t, p.begun[10]-p.begun[9], 2*time.Second, "backoff begins anew")
	})
	play(t, time.Hour, func(int, func(float64)) error { return status.Error(codes.Unimplemented, "") }, func(t *testing.T, p *player) {
		require.Len(t, p.begun, 1)
		require.Zero(t, time.Since(p.start))
	})
}
