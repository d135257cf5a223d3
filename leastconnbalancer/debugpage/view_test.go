package debugpage_test

import (
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/resolver"
	"github.com/leastconn/grpc-leastconn/state"
)

// varied is a service with an endpoint in each state.
func varied(t *testing.T) *service {
	s := serve(t, t.Name(), "dns:///api", at("ready", "full", "draining", "not-ready", "departs", "failed")...)
	s.SetGuards(state.Guards{FailurePenalty: time.Hour, MaxQueued: 5, SlowStart: state.SlowStart{Window: time.Hour, MinWeightPercent: 25, Aggression: 1}})
	for i, n := range []int{6, 2, 3, 0, 4, 0} {
		s.load(s.members[i], n)
	}
	s.view.Set(s.members[0], 4, nil)
	s.members[1].SetMaxInFlight(2)
	s.view.Set(s.members[2], 0, nil)
	s.view.Remove(s.members[3])
	s.view.Remove(s.members[1])
	s.view.Remove(s.members[0])
	l, _, ok := s.view.Acquire() // the only one left
	require.True(t, ok)
	require.True(t, l.Fail())
	s.view.Set(s.members[1], 1, nil)
	s.view.Set(s.members[0], 4, nil)
	n := s.Update(s.members[4:5], []state.Identity{{ID: "pod-new", Addrs: []string{"[::1]:1", "10.0.0.1:1"}}})
	s.view.Set(n[0], 2, nil)
	require.NoError(t, s.Ledger().Check())
	return s
}

func TestTextShowsEveryState(t *testing.T) {
	s := newEnv(t)
	varied(t)
	text := regexp.MustCompile(` +`).ReplaceAllString(s.get("?key="+t.Name()), " ")
	text = regexp.MustCompile(` \d+s\b`).ReplaceAllString(text, " AGE")
	text = regexp.MustCompile(` \d\.\d\d `).ReplaceAllString(text, " SCORE ")
	_, text, _ = strings.Cut(text, "\n\n")
	require.Equal(t, strings.ReplaceAll(`"TEST": 15 in flight, 0 waiting, spread 1.3; endpoints: 4 ready, 1 draining, 1 not ready, 1 departed

endpoint state in flight penalty weight cap ramp priority oldest picks highest score failures in state connected 
departs departed 4 0 - - - - AGE 4 4 - 0 AGE - 
draining draining 3 0 - - - - AGE 3 3 - 0 AGE - 
failed ready 0 1 1 - - 0 - 1 1 SCORE 1 AGE - 
full ready 2 0 1 2 - 0 AGE 2 2 - 0 AGE - 
not-ready not_ready 0 0 - - - - - 0 0 - 0 AGE - 
pod-new ready 0 0 2 - 25 % 0 - 0 0 SCORE 0 AGE - 
ready ready 6 0 4 - - 0 AGE 6 6 SCORE 0 AGE - 
WHY departs: left the list AGE ago, with 4 in flight still
WHY draining: draining for AGE: its weight is 0, so RPCs live on and new ones go elsewhere
WHY not-ready: not ready for AGE

channel picks waiting had to wait retried elsewhere penalties double releases 
dns:///api 16 0 0 0 1 0 
`, "TEST", t.Name()), text)
}

// rows returns the endpoints' rows of a page.
func rows(page string) (rows []string) {
	for _, part := range strings.Split(page, `<th scope="row"`)[1:] {
		if strings.Contains(part, "<svg") {
			rows = append(rows, part[:strings.Index(part, "</tr>")])
		}
	}
	return rows
}

func TestPageShowsEveryState(t *testing.T) {
	s := newEnv(t)
	varied(t)
	page := s.do(http.MethodGet, "/?key="+t.Name(), browser).body
	got := rows(page)
	require.Len(t, got, 7)
	// The departed one has the most over its weight: 4, as if that were the mean of
	// 2, which is 2. So has the full one, 2 over 1.
	for i, want := range [][]string{
		{">departs", `badge">departed`, `class="load" width="1000"`},
		{">draining", `badge">draining`, `class="load" width="750"`},
		{">failed", "penalty 1", `class="load" width="0"`, `class="penalty" x="0" width="500"`, `x1="500"`},
		{">full", `badge full">full`, `class="load" width="1000"`, `x1="500"`},
		{">not-ready", `badge">not ready`, `class="load" width="0"`},
		{` title="10.0.0.1:1, [::1]:1">pod-new`, "slow start, 25 %", `class="load" width="0"`, `<line class="fair" x1="500"`},
		{">ready", `class="load" width="750"`, `x1="500"`},
	} {
		for _, part := range want {
			require.Contains(t, got[i], part)
		}
		require.Equal(t, strings.Contains(strings.Join(want, ""), "x1="), strings.Contains(got[i], "<line"), got[i])
	}
	require.Equal(t, 6, strings.Count(page, `<b class="badge`))
}

// A penalty is drawn in addition to what is in flight, on the same scale.
func TestPenaltyIsDrawnToScale(t *testing.T) {
	s := newEnv(t)
	sv := serve(t, t.Name(), "", at("a", "b")...)
	sv.SetGuards(state.Guards{FailurePenalty: time.Hour})
	for range 3 {
		l, _, _ := sv.view.Acquire()
		sv.leases = append(sv.leases, l)
	}
	require.True(t, sv.leases[0].Fail())
	sv.load(sv.members[0], 1)
	sv.load(sv.members[1], 1)
	var bars []string
	for _, row := range rows(s.do(http.MethodGet, "/?key="+t.Name(), browser).body) {
		bars = append(bars, regexp.MustCompile(`(x|width)="(\d+)" (width="(\d+)" )?height="10"`).FindAllString(row, -1)...)
	}
	require.NoError(t, sv.Ledger().Check())
	require.Subset(t, bars, []string{`width="1000" height="10"`, `width="666" height="10"`, `x="666" width="333" height="10"`})
}

// An RPC that waits, a retry that went elsewhere and a double release are seen.
func TestChannelCounters(t *testing.T) {
	s := newEnv(t)
	sv := serve(t, t.Name(), "dns:///api", at("a", "b")...)
	sv.SetGuards(state.Guards{MaxQueued: 5})
	first, _, _ := sv.view.Acquire()
	var tried state.Tried
	tried.Add(first)
	first.Release()
	first.Release()
	second, _, _ := sv.AcquireOrQueue(t.Context(), &tried, sv.view)
	sv.leases = append(sv.leases, second)
	for _, m := range sv.members {
		m.SetMaxInFlight(1)
	}
	third, _, _ := sv.view.Acquire()
	sv.leases = append(sv.leases, third)
	_, _, outcome := sv.AcquireOrQueue(t.Context(), nil, sv.view)
	require.Equal(t, state.Queued, outcome)
	require.Regexp(t, `\ndns:///api +3 +1 +1 +1 +0 +1 +\n`, s.get("?key="+t.Name()))
	page := s.do(http.MethodGet, "/?key="+t.Name(), browser).body
	require.Contains(t, page, `<div class="alert"><dt>waiting</dt><dd>1</dd>`)
	require.Contains(t, page, `<td class="n alert" data-label="double releases">1</td>`)
}

func TestFilters(t *testing.T) {
	s := newEnv(t)
	one := serve(t, t.Name()+" one", "", state.Identity{ID: "pod-x", Addrs: []string{"10.0.0.1:1"}}, state.Identity{Addrs: []string{"10.0.0.2:1", "[::2]:1"}})
	one.load(one.members[1], 3)
	serve(t, t.Name()+" two", "", at("10.0.0.9:1")...)
	names := func(query string) (names []string) {
		for _, sv := range s.json("&" + query).Services {
			for _, n := range sv.Endpoints {
				names = append(names, n.Address())
			}
		}
		return names
	}
	both := "key=" + t.Name()
	require.Equal(t, []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.9:1"}, names(both))
	require.Equal(t, []string{"10.0.0.9:1"}, names("key=two"))
	require.Equal(t, []string{"10.0.0.1:1"}, names(both+"&q=pod"), "by id")
	require.Equal(t, []string{"10.0.0.2:1"}, names(both+"&q=::2"), "by any address")
	require.Empty(t, names(both+"&q=nobody"))
	require.Empty(t, names("key=nobody"))
	require.Contains(t, s.get("?format=html&"+both+"&q=nobody"), "No endpoint that fits the filter.")
	require.Contains(t, s.get("?format=html&key=nobody"), "No service in use that fits the filter.")
	require.Contains(t, s.get("?key=nobody"), "no service in use")
	page := s.get("?format=html&" + both + "&q=::2&top=7")
	require.Len(t, rows(page), 1)
	require.Contains(t, page, `<dd>3</dd>`, "in flight, of all endpoints")
	require.Contains(t, page, `href="?format=text&amp;key=TestFilters&amp;q=%3a%3a2&amp;state=&amp;sort=&amp;top=7"`)
	require.Contains(t, page, `name="q" value="::2"`)
}

// The most loaded of many come first; those that fit are shown by name.
func TestTop(t *testing.T) {
	s := newEnv(t)
	sv := serve(t, t.Name(), "", at("a", "b", "c", "d")...)
	for i, n := range []int{1, 4, 2, 3} {
		sv.load(sv.members[i], n)
	}
	sv.view.Set(sv.members[1], 4, nil)
	shown := func(top int) (names []string) {
		for _, row := range rows(s.get(fmt.Sprintf("?format=html&key=%s&top=%d", t.Name(), top))) {
			names = append(names, row[1:2])
		}
		return names
	}
	require.Equal(t, []string{"a", "b", "c", "d"}, shown(4))
	require.Equal(t, []string{"d", "c", "b"}, shown(3), "of equals over the weight, the one with more in flight")
	require.Equal(t, []string{"d"}, shown(1))
	require.Contains(t, s.get("?format=html&top=1"), "The 1 most loaded of 4 endpoints")
	require.Contains(t, s.get("?top=1"), "… and 3 more: add ?top=4\n")
	require.NotContains(t, s.get("?top=4"), "more:")
}

// A spread is shown to a tenth.
func TestSpreadIsShort(t *testing.T) {
	s := newEnv(t)
	sv := serve(t, t.Name(), "", at("a", "b")...)
	sv.load(sv.members[0], 1)
	for weight, want := range map[uint32]string{1: "1", 2: "0.8", 3: "0.7", 1000: "0.5"} {
		sv.view.Set(sv.members[0], weight, nil)
		require.Contains(t, s.get("?key="+t.Name()), "spread "+want+";")
		require.Contains(t, s.get("?format=html&key="+t.Name()), "<dd>"+want+"</dd>")
	}
}

// The largest weight does not fit an int of 32 bits.
func TestLargestWeight(t *testing.T) {
	s := newEnv(t)
	sv := serve(t, t.Name(), "", at("a")...)
	sv.view.Set(sv.members[0], resolver.MaxWeight, nil)
	require.Contains(t, s.get("?key="+t.Name()), " 2147483648 ")
	require.Contains(t, s.get("?format=html&key="+t.Name()), ">2147483648<")
}

// Private ledgers and nodes without an address have names to show, too.
func TestWithoutNames(t *testing.T) {
	s := newEnv(t)
	serve(t, "", "", state.Identity{ID: "id"}, state.Identity{})
	require.Contains(t, s.get(""), "\n(private): 0 in flight")
	require.Contains(t, s.get("?format=html"), `<h2 id="service0">private <small>no resource key</small></h2>`)
	require.Contains(t, s.get("?format=html"), `<th scope="row">no target</th>`)
	require.Contains(t, s.get(""), "\nid ")
}

// A ledger that nobody has is not shown, even before it is collected; one whose
// list is empty is.
func TestGoneServicesAreNotShown(t *testing.T) {
	s := newEnv(t)
	sv := serve(t, t.Name(), "channel", at("a")...)
	sv.load(sv.members[0], 1)
	ledger := sv.Ledger()
	shown := func() bool {
		html := strings.Contains(s.get("?format=html"), t.Name())
		require.Equal(t, html, strings.Contains(s.get(""), t.Name()))
		require.Equal(t, html, len(s.json("&key="+t.Name()).Services) == 1)
		return html
	}
	sv.Update(sv.members, nil)
	require.True(t, shown())
	sv.Close()
	require.True(t, shown(), "an RPC is in flight")
	sv.leases[0].Release()
	require.False(t, shown())
	runtime.KeepAlive(ledger)
	require.Contains(t, s.get("?format=json&key="+t.Name()), `"services": []`)
}
