package debugpage_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// bars are the page's, from the loads on, by their classes, places and widths.
func (s *env) bars() (bars []string) {
	s.Helper()
	for _, row := range rows(s.get("?format=html&key=" + s.Name())) {
		bar := ""
		for _, m := range regexp.MustCompile(`class="(load|others|penalty|fair)"( x1?="\d+")?(?: x2="\d+")?( width="\d+")?`).FindAllStringSubmatch(row, -1) {
			bar += m[1] + m[2] + m[3] + " "
		}
		bars = append(bars, strings.NewReplacer(`"`, "", "width=", "").Replace(bar))
	}
	return bars
}

// Where calls have costs, bars are in units, as scores are: what is in flight, the penalty,
// the level, and what others have at the mean cost. Towards a cap, which counts RPCs, they
// are in RPCs.
func TestBarsAreInUnits(t *testing.T) {
	s := newEnv(t)
	sv := serve(t, t.Name(), "", at("a", "b")...)
	sv.SetGuards(state.Guards{FailurePenalty: time.Hour})
	call := func(units int64) state.Lease {
		l, _, outcome := sv.AcquireOrQueue(state.WithCost(t.Context(), units), nil, sv.view)
		require.Equal(t, state.Chosen, outcome)
		sv.leases = append(sv.leases, l)
		return l
	}
	sv.view.Remove(sv.members[1])
	call(300)
	sv.view.Set(sv.members[1], 1, nil)
	for _, units := range []int64{50, 50, 100, 99} {
		call(units)
	}
	require.Equal(t, []string{"load 1000 fair x1=998 ", "load 996 fair x1=998 "}, s.bars(), "level in units, with 1 RPC and with 4")
	require.Contains(t, s.get("?format=html&key="+t.Name()), `4 in flight, 299 units"`)
	require.Contains(t, s.get("?format=html&key="+t.Name()), `<td class="n c-units">299</td>`)

	require.True(t, call(100).Fail()) // which b was given
	require.Equal(t, []string{"load 751 fair x1=750 ", "load 749 penalty x=749 250 fair x1=750 "}, s.bars())
	require.Contains(t, s.get("?key="+t.Name()), "spread")
	sv.members[1].SetMaxInFlight(10)
	require.Equal(t, []string{"load 751 fair x1=750 ", "load 400 penalty x=400 100 "}, s.bars(), "one RPC has left the penalty")

	sv.SetReports(time.Hour)
	sv.members[0].Report(3, 1) // two of others, which are taken to cost 119.8 each
	require.Equal(t, "load 556 others x=556 444 fair x1=1000 ", s.bars()[0])
}

// What is in flight costs shows where that is not one unit each.
func TestTextShowsUnits(t *testing.T) {
	s := newEnv(t)
	sv := serve(t, t.Name(), "dns:///api", at("a", "b")...)
	call := func(ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		t.Cleanup(cancel)
		l, _, outcome := sv.AcquireOrQueue(ctx, nil, sv.view)
		require.Equal(t, state.Chosen, outcome)
		sv.leases = append(sv.leases, l)
	}
	call(t.Context())
	require.NotContains(t, s.get("?key="+t.Name()), "units")
	call(state.WithCost(t.Context(), 5012))
	require.Regexp(t, `units *\n(.*\n)*.* 5012 *\n`, s.get("?key="+t.Name()))
	require.Contains(t, s.get("?key="+t.Name()), " 5013 ", "a score without hundredths")
}
