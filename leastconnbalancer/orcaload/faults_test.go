package orcaload

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	v3orcaservicegrpc "github.com/cncf/xds/go/xds/service/orca/v3"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

type talk = func(*server, v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsServer) error

// says has a server say one report after another, every 50 ms.
func says(next func(s *server, i int) *v3orcapb.OrcaLoadReport) talk {
	return func(s *server, stream v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsServer) error {
		for i := 0; ; i++ {
			if err := stream.Send(next(s, i)); err != nil {
				return err
			}
			s.count()
			select {
			case <-time.After(50 * time.Millisecond):
			case <-stream.Context().Done():
				return nil
			}
		}
	}
}

// count counts a report.
func (s *server) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said++
}

func (s *server) reports() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said
}

// all reports whether something is true of what a channel knows of all servers.
func all(c *leastconntest.Channel, servers []*server, is func(state.ReportSnapshot) bool) bool {
	n := 0
	for _, l := range state.Ledgers() {
		if l.Key() != c.Key() {
			continue
		}
		for _, e := range l.Snapshot().Endpoints {
			if is(e.Members[0].Report) {
				n++
			}
		}
	}
	return n == len(servers)
}

// spread returns the difference between the fullest and the emptiest.
func spread(loads []int) int {
	low, high := math.MaxInt, 0
	for _, n := range loads {
		low, high = min(low, n), max(high, n)
	}
	return high - low
}

// held returns the streams that each server holds.
func held(servers []*server) (loads []int) {
	for _, s := range servers {
		loads = append(loads, s.HeldStreams())
	}
	return loads
}

// Servers that report nothing, or nothing that can be, or nothing any more, are as level as without reports.
func TestUselessReportsAreNoWorseThanNone(t *testing.T) {
	garbage := []float64{math.NaN(), -1, 1e300, math.Inf(1), 1 << 31, math.Inf(-1)}
	for name, tt := range map[string]struct {
		talk talk
		wait func(*leastconntest.Channel, *server) bool
	}{
		"no service": {nil, func(c *leastconntest.Channel, _ *server) bool { return others(c) == 0 }},
		"silence":    {hangs, func(_ *leastconntest.Channel, s *server) bool { opened, _, _ := s.streams(); return opened > 0 }},
		"garbage": {says(func(s *server, i int) *v3orcapb.OrcaLoadReport { return report(garbage[(int(s.says)+i)%len(garbage)]) }),
			func(_ *leastconntest.Channel, s *server) bool { return s.reports() > len(garbage) }},
		"nothing to read": {says(func(*server, int) *v3orcapb.OrcaLoadReport { return &v3orcapb.OrcaLoadReport{RpsFractional: 5} }),
			func(_ *leastconntest.Channel, s *server) bool { return s.reports() > 3 }},
		"a word, and silence": {func(s *server, stream v3orcaservicegrpc.OpenRcaService_StreamCoreMetricsServer) error {
			if err := stream.Send(report(float64(s.says % 7 * 100))); err != nil {
				return err
			}
			s.count()
			return hangs(s, stream)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var servers []*server
			for range 5 {
				servers = append(servers, serve(t, tt.talk))
			}
			c := dial(t, "", config, servers...)
			if tt.wait == nil {
				wait(t, "silence", func() bool { return all(c, servers, func(r state.ReportSnapshot) bool { return r.Silent }) })
			} else {
				require.NoError(t, c.WaitServed(t.Context(), servers[0].Node, servers[1].Node, servers[2].Node, servers[3].Node, servers[4].Node))
				for _, s := range servers {
					wait(t, "the server's words", func() bool { return tt.wait(c, s) })
				}
			}
			for range 33 {
				_, err := c.Open(t.Context())
				require.NoError(t, err)
				require.LessOrEqual(t, spread(held(servers)), 1)
			}
		})
	}
}

// Whatever rate servers tell with what they have in flight, loads are at least as level as without reports.
func TestAbsurdRatesAreNoWorseThanNoReports(t *testing.T) {
	for _, rate := range []float64{math.NaN(), math.Inf(1), -1, 1e300, 1e9, 1e8, 5e-324, 0} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			var servers []*server
			foreign := map[*server]int{} // RPCs of others
			for i := range 5 {
				servers = append(servers, serve(t, says(func(s *server, _ int) *v3orcapb.OrcaLoadReport {
					r := report(float64(2*i + s.HeldStreams()))
					r.RpsFractional = rate
					return r
				})))
				foreign[servers[i]] = 2 * i
			}
			totals := func() (all []int) {
				for _, s := range servers {
					all = append(all, foreign[s]+s.HeldStreams())
				}
				return all
			}
			c := dial(t, "", config, servers...)
			wait(t, "reports", func() bool { return all(c, servers, func(r state.ReportSnapshot) bool { return r.Told }) })
			before := spread(totals())
			_, err := c.OpenN(t.Context(), 40)
			require.NoError(t, err)
			require.LessOrEqual(t, spread(totals()), before+1)
		})
	}
}

// A server that always says to have nothing to do gets one stream of each client more than others: by its own stream the
// client sees that it lies.
func TestLiarDoesNotGetAll(t *testing.T) {
	const clients, each = 5, 4
	liar := serve(t, says(func(*server, int) *v3orcapb.OrcaLoadReport { return report(0) }))
	servers := []*server{liar}
	for range 5 {
		servers = append(servers, serve(t, says(func(s *server, _ int) *v3orcapb.OrcaLoadReport { return report(float64(s.HeldStreams())) })))
	}
	var channels []*leastconntest.Channel
	for i := range clients {
		// Reports come four times as often, so that on a busy machine none is too old.
		channels = append(channels, dial(t, fmt.Sprint(t.Name(), i), strings.ReplaceAll(config, "100ms", "400ms"), servers...))
	}
	for _, c := range channels {
		wait(t, "reports of all servers", func() bool { return all(c, servers, func(r state.ReportSnapshot) bool { return r.Told }) })
	}
	for range each {
		for _, c := range channels {
			wait(t, "the client to know the truth", func() bool { return knows(c.Key(), liar, servers) })
			_, err := c.Open(t.Context())
			require.NoError(t, err)
		}
	}
	loads := held(servers)
	t.Logf("the liar has %d of %d streams, the others %v", loads[0], clients*each, loads[1:])
	require.LessOrEqual(t, loads[0], clients+each)
}

// knows reports whether a client knows what honest servers hold and, where it has streams on the liar, that this one lies.
func knows(key string, liar *server, servers []*server) bool {
	for _, l := range state.Ledgers() {
		if l.Key() != key {
			continue
		}
		for _, e := range l.Snapshot().Endpoints {
			at := slices.IndexFunc(servers, func(s *server) bool { return s.Addr() == e.Addresses[0] })
			r := e.Members[0].Report
			switch {
			case servers[at] == liar && r.Silent != (e.InFlight > 0):
				return false
			case servers[at] != liar && !(r.Told && r.Others+e.InFlight == int64(servers[at].HeldStreams())):
				return false
			}
		}
	}
	return true
}
