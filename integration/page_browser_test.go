package integration

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/debugpage"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
	"github.com/leastconn/grpc-leastconn/state"
)

// TestPageInBrowser looks at the debug page with one Chromium, each time in a
// tab of its own.
func TestPageInBrowser(t *testing.T) {
	browser := startBrowser(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"scale-out":          pageShowsScaleOut,
		"hostile names":      pageShowsNamesAsText,
		"looks":              pageLooks,
		"10,000 endpoints":   pageOfManyEndpoints,
		"selection":          pageKeepsSelection,
		"server is away":     pageSaysThatItIsOld,
		"under another path": pageUnderAPath,
		"screenshots":        pageScreenshots,
		"history":            pageShowsHistory,
		"moves":              pageShowsMoves,
		"in the background":  pageInBackground,
		"after a restart":    pageAfterARestart,
		"sort and filter":    pageSortsAndFilters,
		"details":            pageKeepsDetailsOpen,
		"narrow":             pageNarrow,
		"neither wide":       pageBetween,
		"without script":     pageWithoutScript,
	} {
		t.Run(name, func(t *testing.T) { test(t, browser) })
	}
}

// shown is the figures of an endpoint's row: "in flight, weight, …"
func shown(n *leastconntest.Node) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".endpoints tbody tr")].find((r) => r.textContent.includes(%q))?.querySelector(".n").textContent`, n.Addr())
}

// A scale-out under live streams is seen without a reload: the new node's row
// comes, and its bar fills.
func pageShowsScaleOut(t *testing.T, browser context.Context) {
	ns := startNodes(t, "a", "b", "c")
	e := dialReady(t, all(ns[:2]...)...)
	held := e.hold(4, map[string]int{"a": 2, "b": 2})
	p := openPage(t, browser, "?key="+e.conn.CanonicalTarget())
	p.becomes(`document.getElementById("pulse").textContent === "live"`)
	look[int](p, "window.before = 1")
	require.Equal(t, "2", look[string](p, shown(ns[0])))
	require.Equal(t, 2, look[int](p, `document.querySelectorAll(".endpoints tbody tr").length`))

	e.list(all(ns...)...)
	p.becomes(shown(ns[2]) + ` === "0"`)
	e.hold(2, map[string]int{"c": 2})
	p.becomes(shown(ns[2]) + ` === "2"`)
	require.Equal(t, 1, look[int](p, "window.before"), "it is the page of before")
	require.Equal(t, []string{"1000", "1000", "1000"}, look[[]string](p, `[...document.querySelectorAll(".load")].map((r) => r.getAttribute("width"))`))
	e.list(all(ns[1:]...)...)
	p.becomes(`document.querySelector(".departed th")?.textContent.includes("departed")`)
	require.NoError(t, leastconntest.EndAll(held))
	p.becomes(`document.querySelectorAll(".endpoints tbody tr").length === 2`)
}

var attacks = []string{
	`<script>alert(1)</script>`,
	`"><img src=x onerror=alert(1)>`,
	`' onmouseover='alert(1)' x='`,
	`</title></h2></table></main><svg onload=alert(1)>`,
	`javascript:alert(1)`,
	`<iframe srcdoc="<script>parent.alert(1)</script>"></iframe>`,
}

// Names from resolvers and configurations are text, and nothing else.
func pageShowsNamesAsText(t *testing.T, browser context.Context) {
	ns := startNodes(t, "a")
	for _, name := range attacks {
		c, err := leastconntest.Dial(leastconntest.ChannelConfig{
			ServiceConfig: leastconnbalancer.Config{ResourceKey: name}.ServiceConfig(),
			Endpoints:     []resolver.Endpoint{lcresolver.SetID(ns[0].Endpoint(), name)},
		})
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		_, err = c.Unary(t.Context())
		require.NoError(t, err)
	}
	p := openPage(t, browser, "")
	p.becomes(`document.getElementById("pulse").textContent === "live"`)
	p.becomes(`document.querySelectorAll("section").length >= 6`)
	keys := look[[]string](p, `[...document.querySelectorAll("h2")].map((h) => h.textContent)`)
	ids := look[[]string](p, `[...document.querySelectorAll(".endpoints tbody th")].map((h) => h.firstChild.textContent)`)
	for _, name := range attacks {
		require.Contains(t, keys, name)
		require.Contains(t, ids, name)
	}
	require.Equal(t, 2, look[int](p, "document.scripts.length"))
	require.Zero(t, look[int](p, `document.querySelectorAll("img, iframe, object, embed, form form, [onmouseover], [onload], [onerror]").length`))
	require.Equal(t, look[int](p, `document.querySelectorAll(".endpoints tbody tr").length`), look[int](p, `document.querySelectorAll("td.c-load svg").length`))
	p.load("?q=" + strings.ReplaceAll(attacks[1], " ", "%20"))
	require.Equal(t, attacks[1], look[string](p, `document.querySelector("input[name=q]").value`))
	require.Zero(t, look[int](p, `document.querySelectorAll("img").length`))
}

// contrast is the ratio of an element's colour to the ground's, by WCAG.
const contrast = `(selector) => {
	const light = (c) => { const [r, g, b] = c.match(/[\d.]+/g).map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const [a, b] = [getComputedStyle(document.querySelector(selector)).color, getComputedStyle(document.body).backgroundColor].map(light).sort((x, y) => y - x);
	return (a + 0.05) / (b + 0.05);
}`

// In light and dark, wide and narrow, all can be read and nothing sticks out.
func pageLooks(t *testing.T, browser context.Context) {
	keep := everyState(t)
	defer keep()
	p := openPage(t, browser, "?key=every")
	for _, text := range []string{"granted 1", "reserved 1"} {
		require.Equal(t, 2, look[int](p, fmt.Sprintf(`[...document.querySelectorAll(".badge")].filter((b) => b.textContent === %q).length`, text)), text)
	}
	require.Equal(t, 1, look[int](p, `[...document.querySelectorAll(".badge")].filter((b) => b.textContent === "silent").length`))
	require.Equal(t, 3, look[int](p, `document.querySelectorAll(".capped").length`))
	grounds := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 800, 360} {
			p.as(scheme, width)
			require.LessOrEqual(t, look[int](p, "document.documentElement.scrollWidth"), int(width), "%s, %d px wide", scheme, width)
			require.Greater(t, look[float64](p, `document.querySelector("svg").getBoundingClientRect().width`), 60.0)
			for _, of := range []string{"body", "h1 small", "dt", ".note, footer p", ".badge", ".badge.full", ".badge.penalty", ".departed th", "thead th", ".alert dd", ".reports"} {
				require.Greater(t, look[float64](p, fmt.Sprintf("(%s)(%q)", contrast, of)), 4.5, "%s of %s", scheme, of)
			}
		}
		grounds[look[string](p, "getComputedStyle(document.body).backgroundColor")] = true
	}
	require.Len(t, grounds, 2)
}

// A page with all of 10,000 endpoints lives, and shows the few that one asks for.
func pageOfManyEndpoints(t *testing.T, browser context.Context) {
	r := state.Open("many").NewEndpointSet("many")
	v := r.NewReadySet(0)
	eps := make([]state.Identity, 10_000)
	for i := range eps {
		eps[i] = state.Identity{Addrs: []string{fmt.Sprintf("10.1.%d.%d:50051", i/256, i%256)}}
	}
	for _, m := range r.Update(nil, eps) {
		v.Set(m, 1, nil)
	}
	first, _, _ := v.Acquire()
	defer r.Close()
	defer first.Release()
	const rows = `document.querySelectorAll(".endpoints tbody tr").length`
	const inFlight = `document.querySelector("dd").textContent`

	p := openPage(t, browser, "?key=many")
	require.Equal(t, 100, look[int](p, rows))
	p.load("?key=many&top=10000")
	require.Equal(t, 10_000, look[int](p, rows))
	p.becomes(`document.querySelectorAll(".curve").length === 200 && document.querySelector(".curves").textContent.includes("the page's first 200 endpoints")`)
	second, _, _ := v.Acquire()
	defer second.Release()
	p.becomes(inFlight + ` === "2"`)
	look[bool](p, `document.querySelector("input[name=q]").value = "10.1.7.", document.forms[0].requestSubmit(), true`)
	p.becomes(`document.readyState === "complete" && location.search.includes("10.1.7.") && ` + rows + ` === 256`)
}

// What one has selected stays selected while figures change.
func pageKeepsSelection(t *testing.T, browser context.Context) {
	ns := startNodes(t, "a", "b")
	e := dialReady(t, all(ns...)...)
	p := openPage(t, browser, "?key="+e.conn.CanonicalTarget())
	look[bool](p, `getSelection().selectAllChildren(document.querySelector(".endpoints tbody th")), true`)
	selected := look[string](p, "getSelection().toString()")
	require.Contains(t, []string{ns[0].Addr(), ns[1].Addr()}, selected)
	e.hold(2, map[string]int{"a": 1, "b": 1})
	p.becomes(shown(ns[0]) + ` === "1" && ` + shown(ns[1]) + ` === "1"`)
	require.Equal(t, selected, look[string](p, "getSelection().toString()"))
}

// When the process does not answer, the page says that its figures are old.
func pageSaysThatItIsOld(t *testing.T, browser context.Context) {
	var away atomic.Bool
	h := debugpage.Handler()
	p := open(t, browser, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("<main>a gateway's page</main>"))
			return
		}
		h.ServeHTTP(w, r)
	}), "")
	const pulse = `document.getElementById("pulse").textContent`
	p.becomes(pulse + ` === "live"`)
	away.Store(true)
	p.becomes(pulse + ` === "no answer"`)
	require.NotContains(t, look[string](p, `document.body.textContent`), "gateway")
	away.Store(false)
	p.becomes(pulse + ` === "live"`)
	p.tolerate("503")
}

// It works wherever it is mounted.
func pageUnderAPath(t *testing.T, browser context.Context) {
	mux := http.NewServeMux()
	mux.Handle("/debug/leastconn", debugpage.Handler())
	p := open(t, browser, mux, "debug/leastconn?key=nobody")
	p.becomes(`document.getElementById("pulse").textContent === "live"`)
	require.Equal(t, "No service in use that fits the filter.", look[string](p, `document.querySelector("main").textContent.trim()`))
	look[bool](p, `document.forms[0].requestSubmit(), true`)
	p.becomes(`location.pathname === "/debug/leastconn" && location.search.includes("top=100")`)
}
