package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/debugpage"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// startBrowser starts a headless Chromium with a profile of its own, which
// reaches nothing but loopback, for as long as the test runs.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	require.NoError(t, err, "install Debian's package chromium")
	ctx, cancel := chromedp.NewExecAllocator(context.Background(),
		chromedp.WSURLReadTimeout(patience), // a busy machine starts it slowly
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	t.Cleanup(cancel)
	ctx, _ = chromedp.NewContext(ctx)
	t.Cleanup(func() { require.NoError(t, chromedp.Cancel(ctx)) })
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
	return ctx
}

// tab is the debug page in a tab.
type tab struct {
	*testing.T
	ctx    context.Context
	server *httptest.Server

	mu         sync.Mutex
	complaints []string
}

// open opens the page with a query, and checks at the end that the browser had
// nothing to complain of.
func open(t *testing.T, browser context.Context, handler http.Handler, query string) *tab {
	t.Helper()
	p := &tab{T: t, server: httptest.NewServer(handler)}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithListener(p.listen))
	ctx, stop := context.WithTimeout(ctx, 3*patience)
	p.ctx = ctx
	t.Cleanup(func() {
		stop()
		cancel()
		p.server.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		require.Empty(t, p.complaints)
	})
	p.load(query)
	return p
}

func openPage(t *testing.T, browser context.Context, query string) *tab {
	t.Helper()
	return open(t, browser, debugpage.Handler(), query)
}

func (p *tab) load(query string) {
	p.Helper()
	require.NoError(p, chromedp.Do(p.ctx, chromedp.Navigate(p.server.URL+"/"+query)))
}

// listen notes what a page must not do: errors, messages on the console, among
// them those of a violated policy, dialogs, and requests to anybody else.
func (p *tab) listen(event any) {
	var complaint string
	switch e := event.(type) {
	case *log.EventEntryAdded:
		complaint = fmt.Sprint("log: ", e.Entry.Text, " ", e.Entry.URL)
	case *runtime.EventConsoleAPICalled:
		complaint = fmt.Sprint("console: ", e.Type)
	case *runtime.EventExceptionThrown:
		complaint = fmt.Sprint("exception: ", e.ExceptionDetails.Text)
	case *page.EventJavascriptDialogOpening:
		complaint = "dialog: " + e.Message
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, p.server.URL+"/") {
			complaint = "request to " + e.Request.URL
		}
	}
	if complaint != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.complaints = append(p.complaints, complaint)
	}
}

// tolerate forgets complaints that are part of a test.
func (p *tab) tolerate(of string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = slices.DeleteFunc(p.complaints, func(c string) bool { return strings.Contains(c, of) })
}

// look evaluates an expression on the page.
func look[T any](p *tab, expression string) T {
	p.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	require.NoError(p, err, expression)
	return v
}

// becomes waits until an expression on the page is true.
func (p *tab) becomes(expression string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(p, leastconntest.WaitFor(ctx, expression, func() bool { return look[bool](p, "Boolean("+expression+")") }))
}

// as sets the width of the window and the colour scheme.
func (p *tab) as(scheme string, width int64) {
	p.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
	require.NoError(p, chromedp.Do(p.ctx, chromedp.EmulateViewport(width, 900), chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return err
	})))
}
