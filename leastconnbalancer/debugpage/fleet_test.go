package debugpage_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// reporting is a service whose servers report: a and b the truth, c less than it has, and d
// nothing yet.
func reporting(t *testing.T) *service {
	s := serve(t, t.Name(), "dns:///api", at("a", "b", "c", "d")...)
	s.load(s.members[0], 2)
	s.load(s.members[2], 3)
	s.view.Set(s.members[1], 3, nil)
	s.SetReports(time.Hour)
	s.members[0].Report(12, 1)
	s.members[1].Report(6, 1)
	s.members[2].Report(0, 1)
	s.members[2].Report(0, 1)
	require.NoError(t, s.Ledger().Check())
	return s
}

// What servers report is in the text where reports are used, and only there.
func TestTextShowsReports(t *testing.T) {
	s := newEnv(t)
	sv := reporting(t)
	text := func() string {
		all := regexp.MustCompile(` +`).ReplaceAllString(s.get("?key="+t.Name()), " ")
		all = regexp.MustCompile(` (\d+m)?\d+(\.\d)?s `).ReplaceAllString(all, " AGE ")
		all = regexp.MustCompile(` \d\.\d\d `).ReplaceAllString(all, " SCORE ")
		_, all, _ = strings.Cut(all, "\n\n")
		all, _, _ = strings.Cut(all, "\n\nchannel")
		return all
	}
	require.Equal(t, `"TestTextShowsReports": 5 in flight, 0 waiting, spread 4.5, of the fleet 20 with 16 of others, 1 silent; endpoints: 4 ready

endpoint state in flight penalty weight cap ramp priority oldest picks highest score failures in state connected others report 
a ready 2 0 1 - - 0 AGE 2 2 SCORE 0 AGE - 10 AGE 
b ready 0 0 3 - - 0 - 0 0 SCORE 0 AGE - 6 AGE 
c ready 3 0 1 - - 0 AGE 3 3 SCORE 0 AGE - - silent for AGE 
d ready 0 0 1 - - 0 - 0 0 SCORE 0 AGE - - - `, text())
	require.Equal(t, state.FleetSnapshot{IntervalSeconds: 3600, Told: 2, Silent: 1, Others: 16, Imbalance: 20}, s.json("&key=" + t.Name()).Services[0].Fleet)
	sv.SetReports(0)
	require.Contains(t, text(), ` spread 4.5; endpoints: 4 ready

endpoint state in flight penalty weight cap ramp priority oldest picks highest score failures in state connected 
`)
	require.NotContains(t, s.get("?format=json&key="+t.Name()), "fleet")
	sv.SetReports(time.Hour)
	require.Contains(t, text(), ", of the fleet 0 with 0 of others; endpoints", "before the first report")
}

// The page draws what others have in flight after what the process has.
func TestPageShowsReports(t *testing.T) {
	s := newEnv(t)
	sv := reporting(t)
	sv.SetGuards(state.Guards{FailurePenalty: time.Hour})
	require.True(t, sv.leases[0].Fail())
	page := s.do(http.MethodGet, "/?key="+t.Name(), browser).body
	for _, part := range []string{
		`<dt>spread of the fleet</dt><dd>18</dd>`, `<dt>others</dt><dd>16</dd>`, `<dt>silent</dt><dd>1</dd>`,
		`value="-in_flight">in flight</button></th><th scope="col" class="n c-others"`, `value="-report">report</button></th><th scope="col" class="n c-highest"`, "asked every 1h0m0s",
	} {
		require.Contains(t, page, part)
	}
	got := rows(page)
	cells := func(row string) (all string) {
		for _, cell := range regexp.MustCompile(`<td class="n[^>]*>([^<]*)<`).FindAllStringSubmatch(row, 4) {
			all += regexp.MustCompile(`^(\d+m)?\d+(\.\d)?s`).ReplaceAllString(cell[1], "AGE") + " "
		}
		return all
	}
	// The most is that of a: 1, 10 of others and a penalty of 1. Level would be 17 over 4.
	for i, want := range [][]string{
		{`1 in flight, 10 of others`, `class="load" width="83"`, `class="others" x="83" width="833"`, `class="penalty" x="916" width="83"`, `x1="354"`},
		{`0 in flight, 6 of others`, `class="load" width="0"`, `class="others" x="0" width="166"`, `x1="354"`},
		{`badge penalty">silent</b>`, `3 in flight"`, `class="load" width="250"`, `x1="354"`},
		{`0 in flight"`, `class="load" width="0"`},
	} {
		for _, part := range want {
			require.Contains(t, got[i], part)
		}
		require.Equal(t, i < 2, strings.Contains(got[i], `class="others"`))
	}
	require.Equal(t, "1 10 AGE 2 ", cells(got[0]))
	require.Equal(t, "3 – AGE 3 ", cells(got[2]))
	require.Equal(t, "0 – – 0 ", cells(got[3]))
	require.Regexp(t, `>a[\s<]`, rows(s.get("?format=html&top=1&key=" + t.Name()))[0], "the most loaded, with others")

	sv.SetReports(0)
	page = s.do(http.MethodGet, "/?key="+t.Name(), browser).body
	require.NotRegexp(t, `others|fleet|silent|report`, page[strings.Index(page, "<main>"):strings.Index(page, "<footer>")])
}
