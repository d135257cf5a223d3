package debugpage_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/debugpage"
	"github.com/leastconn/grpc-leastconn/state"
)

// pages are what the handler answers in a bubble, without a server.
type pages map[string]string

func render(t *testing.T) pages {
	all := pages{}
	for _, format := range []string{"text", "html", "json"} {
		w := &recorder{header: http.Header{}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/?format="+format+"&key="+t.Name(), nil)
		require.NoError(t, err)
		debugpage.Handler().ServeHTTP(w, r)
		all[format] = w.String()
	}
	return all
}

type recorder struct {
	strings.Builder
	header http.Header
}

func (w *recorder) Header() http.Header { return w.header }
func (w *recorder) WriteHeader(int)     {}

// tell has the member's connection be in a state since a time ago, after an error.
func tell(m *state.Member, is string, since time.Duration, lastError string) {
	c := state.Connectivity{State: is, Since: time.Now().Add(-since)}
	if lastError != "" {
		c.Failed(errors.New(lastError))
	}
	m.SetConnectivity(c)
}

// For each way to be unable to serve, the page and the text say why, and since when.
func TestWhyAnEndpointDoesNotServe(t *testing.T) {
	const refused = `dial tcp: connect: "refused" <now>`
	for name, tt := range map[string]struct {
		is   func(*service, *state.Member)
		want string // of the last endpoint; "" nothing
	}{
		"unknown":    {func(*service, *state.Member) {}, "not ready for 1m30s"},
		"idle":       {func(_ *service, m *state.Member) { tell(m, "IDLE", time.Second, "") }, "idle for 31s: it has no connection, and has not begun another"},
		"connecting": {func(_ *service, m *state.Member) { tell(m, "CONNECTING", 0, "") }, "connecting for 30s"},
		"connecting again": {
			func(_ *service, m *state.Member) { tell(m, "CONNECTING", 0, refused) },
			"connecting for 30s; last error 30s ago: " + refused,
		},
		"failed": {
			func(_ *service, m *state.Member) { tell(m, "TRANSIENT_FAILURE", 0, refused) },
			"no connection for 1m30s: " + refused + " (30s ago)",
		},
		"not healthy": {
			func(_ *service, m *state.Member) {
				m.NewConnection()
				tell(m, "TRANSIENT_FAILURE", time.Minute, "health check: NOT_SERVING")
			},
			"not healthy for 1m30s: health check: NOT_SERVING (30s ago)",
		},
		"no answer to the health check": {
			func(_ *service, m *state.Member) { m.NewConnection(); tell(m, "CONNECTING", time.Hour, "") },
			"connected, and its health check has not answered for 30s",
		},
		"draining": {
			func(s *service, m *state.Member) { s.view.Set(m, 0, nil) },
			"draining for 30s: its weight is 0, so RPCs live on and new ones go elsewhere",
		},
		"drained": {
			func(s *service, m *state.Member) { s.view.Set(m, 1, nil); s.Ledger().Drain("x") },
			"drained for 30s by Drain, whatever its weight: RPCs live on and new ones go elsewhere",
		},
		"left the list": {
			func(s *service, m *state.Member) { s.load(m, 2); s.Update([]*state.Member{m}, nil) },
			"left the list 30s ago, with 2 in flight still",
		},
		"ready": {func(s *service, m *state.Member) { s.view.Set(m, 1, nil) }, ""},
		"ready again": {
			func(s *service, m *state.Member) { s.view.Set(m, 1, nil); tell(m, "READY", 0, refused) },
			"last error 30s ago: " + refused,
		},
		"an error long ago": {
			func(s *service, m *state.Member) {
				s.view.Set(m, 1, nil)
				tell(m, "READY", 0, refused)
				time.Sleep(time.Hour)
			},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, t.Name(), "", at("ready", "x")...)
				s.view.Remove(s.members[1])
				time.Sleep(time.Minute)
				tt.is(s, s.members[1])
				time.Sleep(30 * time.Second)
				got := render(t)
				if tt.want == "" {
					require.NotContains(t, got["text"], "WHY")
					require.NotContains(t, got["html"], `class="why"`)
					return
				}
				text := tt.want
				require.Contains(t, got["text"], "\nWHY x: "+quotedAsNeeded(text)+"\n")
				require.Contains(t, got["html"], `<p class="why">`+escaped(text)+`</p>`)
			})
		})
	}
}

// quotedAsNeeded is how the text writes what a terminal may misread.
func quotedAsNeeded(s string) string {
	if q := fmt.Sprintf("%q", s); q != `"`+s+`"` {
		return q
	}
	return s
}

func escaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "+", "&#43;").Replace(s)
}

// An endpoint that one channel cannot use says so of that channel, and of three at most.
func TestWhyOfSeveralChannels(t *testing.T) {
	s := newEnv(t)
	serve(t, t.Name(), "dns:///first", at("a")...)
	for i := range 5 {
		other := serve(t, t.Name(), fmt.Sprint("dns:///other", i), at("a")...)
		other.view.Remove(other.members[0])
		tell(other.members[0], "TRANSIENT_FAILURE", 0, "no route")
	}
	text := s.get("?key=" + t.Name())
	require.Regexp(t, `\na +ready `, text)
	require.Regexp(t, `WHY a: dns:///other2: no connection for \d+s: no route \(\d+s ago\)\nWHY a: and 2 more channels\n`, text)
	require.Equal(t, 4, strings.Count(text, "WHY"))
}

// Below xDS a channel has an endpoint set for each cluster and locality, which text, page and JSON tell apart.
func TestChannelsBelowXDS(t *testing.T) {
	s := newEnv(t)
	const target = "xds:///api"
	serve(t, t.Name(), target, at("a")...).SetLabels("", "green")
	for _, locality := range []string{"west", "east"} {
		set := serve(t, t.Name(), target, at("a")...)
		set.SetLabels(locality, "blue")
		set.view.Remove(set.members[0])
		set.SetWarnings([]string{"no effect"})
	}
	text := s.get("?key=" + t.Name())
	require.Regexp(t, `(?s)\nxds:///api cluster blue east +0 .*\nxds:///api cluster blue west +0 .*\nxds:///api cluster green +0 `, text)
	require.Regexp(t, `\nWHY a: xds:///api cluster blue east: not ready for \d+s\nWHY a: xds:///api cluster blue west: not ready for \d+s\n`, text)
	require.Contains(t, text, "\nWARNING xds:///api cluster blue east: no effect\n")
	require.Contains(t, s.get("?format=html&key="+t.Name()), `<th scope="row">xds:///api cluster blue west`)
	d := s.json("&key=" + t.Name()).Services[0]
	for i, want := range [][2]string{{"blue", "east"}, {"blue", "west"}, {"green", ""}} {
		r, m := d.EndpointSets[i], d.Endpoints[0].Members[i]
		require.Equal(t, [][2]string{want, want}, [][2]string{{r.Cluster, r.Locality}, {m.Cluster, m.Locality}})
	}
}

// The facts behind it are in JSON, with their units in their names.
func TestFactsInJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, t.Name(), "dns:///api", at("a")...)
		s.load(s.members[0], 3)
		s.leases[0].Fail()
		s.members[0].NewConnection()
		time.Sleep(3 * time.Second)
		tell(s.members[0], "READY", time.Second, "reset by peer")
		s.SetConfig(json.RawMessage(`{"maxInFlight":7}`))
		time.Sleep(2 * time.Second)
		var d document
		require.NoError(t, json.Unmarshal([]byte(render(t)["json"]), &d))
		n := d.Services[0].Endpoints[0]
		require.Equal(t, []any{5.0, int64(3), uint64(1)}, []any{n.StateSeconds, n.Highest, n.Failures})
		require.Equal(t, state.ConnectivitySnapshot{State: "READY", SinceSeconds: 3, LastError: "reset by peer", LastErrorSeconds: 2}, n.Members[0].Connectivity)
		require.Equal(t, 5.0, n.Members[0].Connection.AgeSeconds)
		require.JSONEq(t, `{"maxInFlight":7}`, string(d.Services[0].EndpointSets[0].Config))
		require.Contains(t, render(t)["text"], "\nCONFIGURATION dns:///api: {\"maxInFlight\":7}\n")
		require.Contains(t, render(t)["html"], "<summary>configuration in use</summary><pre>{\n  &#34;maxInFlight&#34;: 7\n}</pre>")
		require.Regexp(t, `\na +ready +2 +\d +1 +- +- +0 +5s +3 +3 +\d\.\d\d +1 +5s +5s `, render(t)["text"])
	})
}
