package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// three opens a ledger with endpoints a, b and c, which have 1, 3 and 2 in flight; c drains.
func three(t *testing.T) *state.EndpointSet {
	r := state.Open("three").NewEndpointSet("three")
	v := r.NewReadySet(0)
	var leases []state.Lease
	ms := r.Update(nil, []state.Identity{{ID: "a", Addrs: []string{"192.0.2.1:1"}}, {ID: "b", Addrs: []string{"192.0.2.2:1"}}, {ID: "c", Addrs: []string{"192.0.2.3:1"}}})
	for i, n := range []int{1, 3, 2} {
		v.Set(ms[i], 1, nil)
		for range n {
			l, _, _ := v.Acquire()
			leases = append(leases, l)
		}
		v.Remove(ms[i])
	}
	v.Set(ms[0], 1, nil)
	v.Set(ms[1], 1, nil)
	v.Set(ms[2], 0, nil)
	t.Cleanup(func() {
		for _, l := range leases {
			l.Release()
		}
		r.Close()
	})
	return r
}

// names are those of the rows, in their order.
const names = `[...document.querySelectorAll(".endpoints tbody th")].map((h) => h.firstChild.data.trim()[0]).join("")`

// sorted is the column that a screen reader says is sorted, and how.
const sorted = `[...document.querySelectorAll("[aria-sort]")].map((h) => h.textContent + " " + h.ariaSort).join()`

func (p *tab) keys(keys string) {
	p.Helper()
	require.NoError(p, chromedp.Do(p.ctx, chromedp.KeyEvent(keys)))
}

// refreshed waits until the page has brought itself up to date twice.
func (p *tab) refreshed() {
	p.Helper()
	p.becomes(fmt.Sprintf("asked >= %d", look[int](p, "asked")+2))
}

// A click or a key sorts by a column, another filters by a state, and both stay over
// refreshes, as does the focus.
func pageSortsAndFilters(t *testing.T, browser context.Context) {
	three(t)
	p := openPage(t, browser, "?key=three")
	p.as("light", 1360)
	require.Equal(t, "abc", look[string](p, names))
	require.Equal(t, "endpoint ascending", look[string](p, sorted))
	require.NoError(t, chromedp.Do(p.ctx, chromedp.Click("th.c-in_flight button")))
	p.becomes(names + ` === "bca"`)
	require.Equal(t, "in flight descending", look[string](p, sorted))
	require.Equal(t, "Endpoints by in flight, highest first", look[string](p, `document.getElementById("news").textContent`))
	p.refreshed()
	require.Equal(t, "bca", look[string](p, names))

	look[bool](p, `document.querySelector("th.c-in_flight button").focus(), true`)
	p.keys(" ")
	p.becomes(names + ` === "acb"`)
	require.Equal(t, "in flight ascending", look[string](p, sorted))
	p.keys("\r")
	p.becomes(names + ` === "bca"`)
	p.refreshed()
	require.Equal(t, "in flight", look[string](p, "document.activeElement.textContent"))
	p.keys("\t")
	require.Equal(t, "highest", look[string](p, "document.activeElement.textContent"))
	require.Equal(t, "solid", look[string](p, "getComputedStyle(document.activeElement).outlineStyle"), "one sees where the focus is")

	look[bool](p, `document.querySelector("select[name=state]").focus(), true`)
	p.keys("dr")
	p.becomes(names + ` === "c"`)
	p.refreshed()
	require.Equal(t, "c", look[string](p, names))
	require.Equal(t, "-in_flight", look[string](p, `document.querySelector("select[name=sort]").value`))
	p.load(look[string](p, "location.search"))
	require.Equal(t, "c", look[string](p, names), "the address has it all")
}

// What one has opened stays open.
func pageKeepsDetailsOpen(t *testing.T, browser context.Context) {
	three(t).SetConfig([]byte(`{"maxInFlight":7}`))
	p := openPage(t, browser, "?key=three")
	look[bool](p, `document.querySelector("summary").click(), true`)
	p.refreshed()
	require.True(t, look[bool](p, `document.querySelector("details").open`))
	require.Contains(t, look[string](p, `document.querySelector("pre").innerText`), `"maxInFlight": 7`)
}

const figures = `[...document.querySelectorAll(".endpoints tbody tr")].flatMap((r) => [...r.querySelectorAll("td.n")].filter((c) => c.getBoundingClientRect().width > 20).map((c) => r.cells[0].firstChild.data.trim() + " " + c.className + " " + c.textContent.replace(/[\d.]+s/, "AGE")))`

// sameFigures opens a page and checks that at each width, on which check looks then, it has
// every figure of the wide table, and is a table to screen readers.
func sameFigures(t *testing.T, browser context.Context, widths []int64, check func(*tab)) {
	t.Helper()
	defer everyState(t)()
	p := openPage(t, browser, "?key=every")
	p.as("light", 1360)
	wide := look[[]string](p, figures)
	require.Len(t, wide, 14*look[int](p, `document.querySelectorAll(".endpoints tbody tr").length`))
	for _, width := range widths {
		p.as("light", width)
		require.Equal(t, wide, look[[]string](p, figures), "%d px wide", width)
		require.LessOrEqual(t, look[int](p, "document.documentElement.scrollWidth"), int(width))
		require.Zero(t, look[int](p, fmt.Sprintf(`[...document.querySelectorAll("main *")].filter((e) => !e.closest("svg, .unseen, thead") && e.getBoundingClientRect().right > %d).length`, width)))
		roles := p.roles()
		rows := look[int](p, `document.querySelectorAll("tbody tr").length`)
		require.Equal(t, rows, roles["rowheader"], "it is a table still")
		require.GreaterOrEqual(t, roles["row"], rows)
		require.Greater(t, roles["cell"], 14*rows/2)
		check(p)
	}
}

// Narrow, each endpoint is a card that has every figure of the wide table, with its label.
func pageNarrow(t *testing.T, browser context.Context) {
	sameFigures(t, browser, []int64{320, 599}, func(p *tab) {
		labels := look[[]string](p, `[...document.querySelector(".endpoints tbody tr").querySelectorAll("td.n")].map((c) => getComputedStyle(c, "::before").content)`)
		require.Equal(t, `"in flight" "units" "others" "report" "highest" "cap" "score" "weight" "priority" "failures" "oldest" "in state" "connected" "picks"`, strings.Join(labels, " "))
	})
}

// apart lists what two of a row's parts cover both, and parts that are not below their column's
// head. Two lines have a head each, in the same order.
const apart = `[...document.querySelectorAll(".endpoints")].flatMap((table) => {
	const boxes = (row) => [...row.querySelectorAll("td, thead th, .badges")].filter((e) => e.textContent || e.firstChild).map((e) => [e.className, e.getBoundingClientRect()]);
	const heads = new Map(boxes(table.tHead.rows[0]));
	return [...table.rows].flatMap((row) => boxes(row).flatMap(([name, a], i, all) => [
		...all.slice(i + 1).filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1).map(([other]) => name + " and " + other),
		...(heads.has(name) && Math.abs(heads.get(name).right - a.right) > 1 ? [name + " is not below its head"] : []),
	]));
})`

// Neither wide nor narrow, each endpoint has two lines below heads of two lines, that sort.
func pageBetween(t *testing.T, browser context.Context) {
	sameFigures(t, browser, []int64{600, 900, 1263}, func(p *tab) {
		require.Empty(t, look[[]string](p, apart))
		require.Equal(t, 2, look[int](p, `new Set([...document.querySelectorAll("thead .n")].filter((h) => h.closest(".endpoints")).map((h) => Math.round(h.getBoundingClientRect().top))).size`)/look[int](p, `document.querySelectorAll(".endpoints").length`))
		require.Equal(t, "normal", look[string](p, `getComputedStyle(document.querySelector("td.c-picks"), "::before").content.replace("none", "normal")`), "no labels of cards")
		require.NoError(t, chromedp.Do(p.ctx, chromedp.Click("th.c-highest button")))
		p.becomes(`document.querySelector("th.c-highest").ariaSort === "descending" && document.querySelector("td.c-highest").textContent === "4"`)
		p.load("?key=every")
	})
}

// roles counts what a screen reader is told there is.
func (p *tab) roles() map[string]int {
	p.Helper()
	roles := map[string]int{}
	require.NoError(p, chromedp.Do(p.ctx, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		tree, err := chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		for _, n := range tree.Nodes {
			if !n.Ignored && n.Role != nil {
				roles[strings.Trim(string(n.Role.Value), `"`)]++
			}
		}
		return err
	})))
	return roles
}

// Without JavaScript there is the table, without a history, and its buttons work.
func pageWithoutScript(t *testing.T, browser context.Context) {
	three(t)
	p := openPage(t, browser, "?key=nobody")
	p.as("light", 1360)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})))
	p.load("?key=three")
	require.Equal(t, "abc", look[string](p, names))
	require.Equal(t, "none", look[string](p, `getComputedStyle(document.querySelector("td.c-minute")).display`))
	require.Contains(t, look[string](p, `document.querySelector("header").innerText`), "Without JavaScript")
	require.NoError(t, chromedp.Do(p.ctx, chromedp.Click("th.c-in_flight button")))
	p.becomes(names + ` === "bca" && document.readyState === "complete"`)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.Click("th.c-in_flight button")))
	p.becomes(names + ` === "acb"`)
}
