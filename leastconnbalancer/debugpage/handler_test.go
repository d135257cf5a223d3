package debugpage_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/debugpage"
	"github.com/leastconn/grpc-leastconn/state"
)

const (
	htmlType = "text/html; charset=utf-8"
	textType = "text/plain; charset=utf-8"
	jsonType = "application/json"
)

// browser is the Accept header of one.
const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"

func TestFormats(t *testing.T) {
	s := newEnv(t)
	for _, tt := range []struct{ query, accept, want string }{
		{"", "", textType},
		{"", "*/*", textType}, // curl
		{"", browser, htmlType},
		{"", "application/json", jsonType},
		{"", "application/json, text/plain, */*", jsonType},
		{"", "image/png", textType},
		{"?format=html", "", htmlType},
		{"?format=text", browser, textType},
		{"?format=json", browser, jsonType},
		{"?format=html", "application/json", htmlType},
		{"?format=", browser, htmlType},
	} {
		a := s.do(http.MethodGet, "/"+tt.query, tt.accept)
		require.Equal(t, http.StatusOK, a.StatusCode)
		require.Equal(t, tt.want, a.Header.Get("Content-Type"), "%+v", tt)
		require.Equal(t, tt.want == htmlType, strings.HasPrefix(a.body, "<!DOCTYPE html>"), "%+v", tt)
		require.Equal(t, tt.want == jsonType, strings.HasPrefix(a.body, "{"), "%+v", tt)
		require.Equal(t, tt.want == textType, strings.HasPrefix(a.body, "least_conn in this process"), "%+v", tt)
	}
}

func TestWrongRequests(t *testing.T) {
	s := newEnv(t)
	for _, tt := range []struct {
		method, query string
		code          int
		want          string
	}{
		{http.MethodGet, "?format=xml", 400, `format "xml": want html, text or json`},
		{http.MethodGet, "?format=HTML", 400, `format "HTML": want html, text or json`},
		{http.MethodGet, "?format=<script>", 400, `format "<script>": want html, text or json`},
		{http.MethodGet, "?top=0", 400, `top "0": want a whole number from 1 to 100000`},
		{http.MethodGet, "?top=-3", 400, `top "-3": want a whole number from 1 to 100000`},
		{http.MethodGet, "?top=100001", 400, `top "100001": want a whole number from 1 to 100000`},
		{http.MethodGet, "?top=99999999999999999999", 400, `top "99999999999999999999": want a whole number from 1 to 100000`},
		{http.MethodGet, "?top=2.5", 400, `top "2.5": want a whole number from 1 to 100000`},
		{http.MethodGet, "?top=all%0aX-Header:1", 400, `top "all\nX-Header:1": want a whole number from 1 to 100000`},
		{http.MethodGet, "?state=READY", 400, `state "READY": want one of ready, full, draining, not_ready, departed`},
		{http.MethodGet, "?sort=--weight", 400, `sort "--weight": want one of name, load, in_flight, units, others, report, highest, cap, score, weight, priority, failures, oldest, since, connected, picks, or one with - before it`},
		{http.MethodGet, "?asset=handler.go", 404, `asset "handler.go": want page.css, page.js, history.js or page.svg`},
		{http.MethodGet, "?asset=../page.css", 404, `asset "../page.css": want page.css, page.js, history.js or page.svg`},
		{http.MethodGet, "?asset=page.html", 404, `asset "page.html": want page.css, page.js, history.js or page.svg`},
		{http.MethodPost, "", 405, "method POST: want GET or HEAD"},
		{http.MethodDelete, "?asset=page.css", 405, "method DELETE: want GET or HEAD"},
		{http.MethodOptions, "", 405, "method OPTIONS: want GET or HEAD"},
	} {
		a := s.do(tt.method, "/"+tt.query, browser)
		require.Equal(t, tt.code, a.StatusCode, "%+v", tt)
		require.Equal(t, tt.want+"\n", a.body)
		require.Equal(t, textType, a.Header.Get("Content-Type"), "what was asked for is not markup")
		checkHeaders(t, a)
		if tt.code == http.StatusMethodNotAllowed {
			require.Equal(t, "GET, HEAD", a.Header.Get("Allow"))
		}
	}
}

// checkHeaders checks those that every answer has.
func checkHeaders(t *testing.T, a answer) {
	t.Helper()
	csp := strings.Split(a.Header.Get("Content-Security-Policy"), "; ")
	require.ElementsMatch(t, []string{
		"default-src 'none'", "style-src 'self'", "script-src 'self'", "img-src 'self'", "connect-src 'self'",
		"base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'",
	}, csp)
	for name, want := range map[string]string{
		"X-Content-Type-Options":       "nosniff",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
		"Vary":                         "Accept",
		"Access-Control-Allow-Origin":  "",
	} {
		require.Equal(t, want, a.Header.Get(name), name)
	}
}

func TestHeaders(t *testing.T) {
	s := newEnv(t)
	for _, query := range []string{"", "?format=html", "?format=json", "?asset=page.css", "?asset=page.js"} {
		checkHeaders(t, s.do(http.MethodGet, "/"+query, "*/*"))
	}
}

// HEAD is GET without a body.
func TestHead(t *testing.T) {
	s := newEnv(t)
	for _, query := range []string{"", "?format=html", "?format=json", "?asset=page.css", "?top=no"} {
		get, head := s.do(http.MethodGet, "/"+query, "*/*"), s.do(http.MethodHead, "/"+query, "*/*")
		require.Empty(t, head.body)
		require.NotEmpty(t, get.body)
		require.Equal(t, get.StatusCode, head.StatusCode)
		require.Equal(t, get.Header.Get("Content-Type"), head.Header.Get("Content-Type"))
		checkHeaders(t, head)
	}
}

func TestAssets(t *testing.T) {
	s := newEnv(t)
	for name, contentType := range map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "history.js": "text/javascript; charset=utf-8", "page.svg": "image/svg+xml"} {
		want, err := os.ReadFile(name)
		require.NoError(t, err)
		a := s.do(http.MethodGet, "/?asset="+name, "*/*")
		require.Equal(t, contentType, a.Header.Get("Content-Type"))
		require.Equal(t, string(want), a.body)
		require.Contains(t, s.get("?format=html"), `="?asset=`+name+`"`)
	}
}

// The page works under any path: it names none.
func TestUnderAPath(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/debug/leastconn", debugpage.Handler())
	mux.Handle("/admin/", http.StripPrefix("/admin", debugpage.Handler()))
	s := &env{t, httptest.NewServer(mux)}
	t.Cleanup(s.Close)
	for _, path := range []string{"/debug/leastconn", "/admin/lb", "/admin/"} {
		page := s.do(http.MethodGet, path, browser)
		require.Equal(t, http.StatusOK, page.StatusCode)
		require.NotRegexp(t, `(href|src|action)="[^?#]`, page.body, "links are relative to where the page is")
		require.Equal(t, http.StatusOK, s.do(http.MethodGet, path+"?asset=page.js", "*/*").StatusCode)
	}
}

// It says whose figures these are.
func TestD82ThisProcess(t *testing.T) {
	s := newEnv(t)
	name := filepath.Base(os.Args[0])
	require.Contains(t, s.get("?format=html"), "in this process: "+name)
	require.Contains(t, s.get("?format=html"), "Counts are of this process only.")
	require.True(t, strings.HasPrefix(s.get(""), "least_conn in this process ("+name+", pid "))
	d := s.json("")
	require.Equal(t, name, d.Process.Name)
	require.Equal(t, os.Getpid(), d.Process.PID)
}

// Looking changes nothing and holds nothing.
func TestReadsOnly(t *testing.T) {
	s := newEnv(t)
	sv := serve(t, t.Name(), "channel", at("a", "b")...)
	sv.load(sv.members[0], 2)
	before := sv.Ledger().Snapshot()
	for _, query := range []string{"?format=html", "", "?format=json", "?format=html&q=a&key=Read&top=1", "?asset=page.js"} {
		s.get(query)
	}
	after := sv.Ledger().Snapshot()
	for i := range after.Endpoints { // they age
		for _, n := range []*state.EndpointSnapshot{&before.Endpoints[i], &after.Endpoints[i]} {
			n.OldestSeconds, n.StateSeconds, n.Members[0].SinceSeconds = 0, 0, 0
		}
	}
	require.Equal(t, before, after)
	require.NoError(t, sv.Ledger().Check())
}
