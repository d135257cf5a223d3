package integration

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/debugpage"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// rowOf is the row of an endpoint, by what its name has in it.
func rowOf(name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".endpoints tbody tr")].find((r) => r.cells[0].textContent.includes(%q))`, name)
}

// curveOf is the label of an endpoint's curve, with the events that it marks.
func curveOf(name string) string {
	return rowOf(name) + `?.querySelector(".curve").getAttribute("aria-label")`
}

// marked waits until the endpoint's curve marks an event of a kind that says a text.
func (p *tab) marked(name, kind, text string) {
	p.Helper()
	p.becomes(fmt.Sprintf(`[...(%s?.querySelectorAll(".mark.%s title") ?? [])].some((m) => m.textContent.includes(%q))`, rowOf(name), kind, text))
}

// The page shows the last minute of each endpoint, with what has happened, and says so to
// a screen reader once.
func pageShowsHistory(t *testing.T, browser context.Context) {
	ns := startNodes(t, "a", "b", "c")
	a, c := ns[0].Addr(), ns[2].Addr()
	e := dialReady(t, all(ns[:2]...)...)
	held := e.hold(4, map[string]int{"a": 2, "b": 2})
	p := openPage(t, browser, "?key="+e.conn.CanonicalTarget())
	p.becomes(`document.documentElement.className === "js"`)
	require.Equal(t, 2, look[int](p, `document.querySelectorAll(".curve").length`))
	require.Zero(t, look[int](p, `document.querySelectorAll(".mark").length`), "what was there before has not joined")
	require.Equal(t, "last minute: 2 to 2 in flight", look[string](p, curveOf(a)))
	length := look[int](p, rowOf(a)+`.querySelector(".line").getAttribute("d").length`)
	held = append(held, e.hold(2, map[string]int{"a": 1, "b": 1})...)
	p.becomes(curveOf(a) + ` === "last minute: 2 to 3 in flight"`)
	p.becomes(fmt.Sprintf(`%s.querySelector(".line").getAttribute("d").length > %d`, rowOf(a), length))

	e.list(all(ns...)...)
	p.marked(c, "joined", "joined")
	p.becomes(`document.getElementById("news").textContent.includes("joined")`)
	ns[0].GoAway()
	p.marked(a, "connection", "has a new connection, 3 RPCs on the one before (GOAWAY)")
	ns[2].Stop()
	p.marked(c, "failed", "is not ready, was ready")
	require.NoError(t, ns[2].Restart())
	e.list(all(ns[1:]...)...)
	p.marked(a, "left", "left the list, 3 RPCs in flight")
	here, _ := on("a", held)
	require.NoError(t, leastconntest.EndAll(here))
	p.becomes("!" + rowOf(a))
	const events = `[...document.querySelectorAll(".events li")].map((l) => l.textContent)`
	require.Equal(t, 1, look[int](p, events+fmt.Sprintf(`.filter((l) => l.includes(%q)).length`, a+" left the list")), "those of endpoints that are gone, once")
	require.Equal(t, 1, look[int](p, events+fmt.Sprintf(`.filter((l) => l.includes(%q)).length`, c+" joined")))
	p.load("?key=" + e.conn.CanonicalTarget())
	require.Zero(t, look[int](p, `document.querySelectorAll(".events li").length`), "it was kept in the page that is gone")
}

// Streams that move are marked where they leave and where they arrive.
func pageShowsMoves(t *testing.T, browser context.Context) {
	r := state.Open("moves").NewEndpointSet("moves")
	defer r.Close()
	r.SetRebalance(state.Rebalance{PerSecond: 1})
	v := r.NewReadySet(0)
	ms := r.Update(nil, []state.Identity{{ID: "from", Addrs: []string{"192.0.2.1:1"}}, {ID: "to", Addrs: []string{"192.0.2.2:1"}}})
	v.Set(ms[0], 1, nil)
	r.SetQueueSets(v)
	var session state.Session
	begin := func() (state.Lease, <-chan struct{}) {
		ctx, moved := session.Next(t.Context())
		l, _, outcome := r.AcquireOrQueue(ctx, nil, v)
		require.Equal(t, state.Chosen, outcome)
		return l, moved
	}
	first, moved := begin()
	v.Set(ms[1], 1, nil)
	p := openPage(t, browser, "?key=moves")
	p.becomes(`document.getElementById("pulse").textContent === "live"`)
	v.Set(ms[0], 0, nil)
	<-moved
	first.Release()
	second, _ := begin()
	defer second.Release()
	p.marked("from", "moved", "1 stream moved away")
	p.marked("to", "moved", "1 stream moved here")
}

// Where nobody looked, as while the tab was in the background, a curve is broken; a page
// that was not seen asks for nothing and goes on when it is.
func pageInBackground(t *testing.T, browser context.Context) {
	var asked atomic.Int64
	h := debugpage.Handler()
	p := open(t, browser, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		h.ServeHTTP(w, r)
	}), "?key=nobody")
	const pulse = `document.getElementById("pulse").textContent === "live"`
	p.becomes(pulse)
	look[bool](p, `Object.defineProperty(document, "hidden", { get: () => window.away !== false }), pulse.className = "", pulse.textContent = "", true`)
	look[bool](p, `new Promise((r) => setTimeout(r, 100)), refresh = () => { window.looked = true }, true`)
	p.becomes(`performance.now() - (window.since ??= performance.now()) > 2500`)
	require.False(t, look[bool](p, `Boolean(window.looked)`))
	look[bool](p, `window.away = false, document.dispatchEvent(new Event("visibilitychange")), true`)
	require.True(t, look[bool](p, `window.looked`), "at once")

	const line = `curve({ samples: [[0, 1], [1000, 2], [9000, 4], [10000, 4]], marks: [], is: {} }, 10000, 4, 5000).querySelector(".line").getAttribute("d")`
	require.Equal(t, "M100.0,17.8H102.0V13.5M118.0,5.0H120.0V5.0", look[string](p, line))
}

// Another process at the same address has other counts: what was kept is dropped.
func pageAfterARestart(t *testing.T, browser context.Context) {
	r := state.Open("restart").NewEndpointSet("restart")
	defer r.Close()
	r.NewReadySet(0).Set(r.Update(nil, []state.Identity{{ID: "pod", Addrs: []string{"192.0.2.1:1"}}})[0], 1, nil)
	var again atomic.Bool
	h := debugpage.Handler()
	p := open(t, browser, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !again.Load() || r.URL.Query().Has("asset") {
			h.ServeHTTP(w, r)
			return
		}
		of := httptest.NewRecorder()
		h.ServeHTTP(of, r)
		for name, value := range of.Header() {
			w.Header()[name] = value
		}
		_, _ = w.Write(bytes.Replace(of.Body.Bytes(), []byte(", pid "), []byte(", pid 9"), 1))
	}), "?key=restart")
	const kept = `[...services.values()][0]`
	p.becomes(kept)
	look[bool](p, "window.before = "+kept+", true")
	again.Store(true)
	p.becomes(`document.querySelector("h1").textContent.includes("pid 9")`)
	p.becomes(`document.getElementById("news").textContent === "the process has started again"`)
	require.True(t, look[bool](p, kept+" !== window.before"))
	require.Zero(t, look[int](p, `document.querySelectorAll(".mark").length`))
}
