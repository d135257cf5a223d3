package debugpage_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// A bar fills towards the lower one of the cap and the server's limit, and says which.
func TestBarsFillTowardsTheCap(t *testing.T) {
	s := newEnv(t)
	for name, tt := range map[string]struct {
		cap, limit, others uint32
		bar, cell, label   string
	}{
		"none":                   {0, 0, 0, "1000", "–", `aria-label="2 in flight"`},
		"cap":                    {8, 0, 0, "250", "8", `aria-label="2 in flight, cap 8"`},
		"server's limit":         {0, 4, 0, "500", "4 server", `aria-label="2 in flight, cap 4 server"`},
		"its other streams":      {0, 5, 1, "500", "4 server", `aria-label="2 in flight, cap 4 server"`},
		"limit below the cap":    {8, 4, 0, "500", "4 server", `aria-label="2 in flight, cap 4 server"`},
		"cap below the limit":    {4, 8, 0, "500", "4", `aria-label="2 in flight, cap 4"`},
		"more than there may be": {1, 0, 0, "1000", "1", `aria-label="2 in flight, cap 1"`},
	} {
		t.Run(name, func(t *testing.T) {
			sv := serve(t, t.Name(), "", at("a")...)
			sv.load(sv.members[0], 2)
			sv.members[0].SetMaxInFlight(tt.cap)
			c := sv.members[0].NewConnection()
			if tt.limit > 0 {
				c.SetLimit(tt.limit)
				c.AddOthers(int(tt.others))
			}
			row := rows(s.do(http.MethodGet, "/?key="+t.Name(), browser).body)[0]
			require.Contains(t, row, `class="load" width="`+tt.bar+`"`)
			require.Contains(t, row, `<td class="n c-cap">`+tt.cell+`</td>`)
			require.Contains(t, row, tt.label)
			require.Equal(t, tt.cell != "–", regexp.MustCompile(`<svg class="capped"`).MatchString(row))
		})
	}
}

// The limits of two channels add up; a channel without one may add any number.
func TestCapOfTwoChannels(t *testing.T) {
	s := newEnv(t)
	first, second := serve(t, t.Name(), "first", at("a")...), serve(t, t.Name(), "second", at("a")...)
	cell := func() string {
		return regexp.MustCompile(`c-cap">([^<]*)<`).FindStringSubmatch(rows(s.get("?format=html&key=" + t.Name()))[0])[1]
	}
	first.members[0].NewConnection().SetLimit(3)
	require.Equal(t, "–", cell())
	second.members[0].NewConnection().SetLimit(4)
	require.Equal(t, "7 server", cell())
	second.view.Remove(second.members[0])
	require.Equal(t, "3 server", cell())
}

// A penalty fills the bar up to the cap and no further.
func TestPenaltyTowardsTheCap(t *testing.T) {
	s := newEnv(t)
	sv := serve(t, t.Name(), "", at("a", "b")...)
	sv.SetGuards(state.Guards{FailurePenalty: 1 << 40})
	sv.load(sv.members[1], 9)
	sv.load(sv.members[0], 4)
	require.True(t, sv.leases[9].Fail())
	sv.members[0].SetMaxInFlight(8)
	row := func() string { return rows(s.get("?format=html&key=" + t.Name()))[0] }
	require.Contains(t, row(), `class="load" width="375" height="10"/><rect class="penalty" x="375" width="125"`)
	sv.members[0].SetMaxInFlight(3)
	require.Contains(t, row(), `class="load" width="1000" height="10"/>`)
	require.NotContains(t, row(), `rect class="penalty"`)
}
