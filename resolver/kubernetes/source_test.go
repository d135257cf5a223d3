package kubernetes

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Changes of any slice of the service are told, by new API servers and by those
// that have no lists that are watches; other services are not its own.
func TestWatch(t *testing.T) {
	for name, asks := range map[string][]request{
		"new": {{watchList, ""}},
		"old": {{watchList, ""}, {"list", "0"}, {"watch", "12"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAPI(t)
			a.noWatchList = name == "old"
			other := slice("other", podC)
			other.Labels = map[string]string{"kubernetes.io/service-name": "mail"}
			a.put(slice("1", podA), other)
			c := a.listen("k8s:///chat.shop:grpc")
			c.has("a")
			a.put(slice("2", podB))
			c.has("a b")
			a.put(slice("1", down("a", "10.0.0.1")))
			c.has("b")
			a.put(slice("1", podA))
			c.has("a b")
			a.remove("2")
			c.has("a")
			c.silent()
			require.Equal(t, asks, a.requests())
		})
	}
}

// A service appears after the channel does.
func TestServiceAppears(t *testing.T) {
	a := startAPI(t)
	c := a.listen("k8s:///chat.shop:grpc")
	c.failed("k8s: service chat in namespace shop: it has no EndpointSlices: there is no such service")
	a.put(slice("1", podA))
	c.has("a")
}

// Ways for an API server to end watches, and what is asked then: a watch from
// where the last one was, or a list if that is too long ago.
func TestWatchesEnd(t *testing.T) {
	type api = apiServer
	goOn, anew, oldAnew := []string{"watch"}, []string{"watch", watchList}, []string{"watch", watchList, "list", "watch"}
	for name, test := range map[string]struct {
		server   func(a *api)
		old      bool // the last version that the client has heard of is forgotten
		bookmark bool // but for a bookmark
		asks     []string
	}{
		"ends":                          {func(*api) {}, false, false, goOn},
		"breaks":                        {func(a *api) { a.cuts = true }, false, false, goOn},
		"forgets":                       {func(*api) {}, true, false, anew},
		"forgets, answers 410":          {func(a *api) { a.gone = true }, true, false, anew},
		"forgets after a bookmark":      {func(*api) {}, true, true, goOn},
		"old, ends":                     {func(a *api) { a.noWatchList = true }, false, false, goOn},
		"old, forgets":                  {func(a *api) { a.noWatchList = true }, true, false, oldAnew},
		"old, forgets, answers 410":     {func(a *api) { a.noWatchList, a.gone = true, true }, true, false, oldAnew},
		"old, forgets after a bookmark": {func(a *api) { a.noWatchList = true }, true, true, goOn},
	} {
		t.Run(name, func(t *testing.T) {
			a := startAPI(t)
			test.server(a)
			a.put(slice("1", podA))
			c := a.listen("k8s:///chat.shop:grpc")
			c.has("a")
			a.put(slice("2", podB)) // a watch that tells nothing is no watch to client-go
			c.has("a b")
			before := len(a.requests())
			a.pass(1000)
			if test.bookmark {
				a.bookmark()
			}
			if test.old {
				a.edit(func() { a.forgotten = 1000 })
			}
			a.endWatches()
			a.put(slice("3", podC))
			c.has("a b c")
			c.silent()
			var asks []string
			for _, r := range a.requests()[before:] {
				asks = append(asks, r.verb)
			}
			require.Equal(t, test.asks, asks)
		})
	}
}

// A list that comes after the API server was away a long time takes the place of the one
// before: what has left meanwhile is not missed.
func TestRelistReplaces(t *testing.T) {
	a := startAPI(t)
	a.put(slice("1", podA), slice("2", podB))
	c := a.listen("k8s:///chat.shop:grpc")
	c.has("a b")
	a.stop()
	a.remove("1")
	a.put(slice("2", podB, podC))
	a.forget()
	c.failed("connection refused")
	c.has("a b")
	a.start()
	c.has("b c")
}

// An API server that was away for a moment goes on to tell, and what was said of
// it is over.
func TestAPIServerIsAway(t *testing.T) {
	a := startAPI(t)
	a.put(slice("1", podA))
	c := a.listen("k8s:///chat.shop:grpc")
	c.has("a")
	a.put(slice("2", podB)) // a watch that tells nothing is no watch to client-go
	c.has("a b")
	a.stop()
	c.failed("connection refused")
	a.start()
	a.put(slice("1", down("a", "10.0.0.1")), slice("2", down("b", "10.0.0.2")))
	c.failed("none of its 2 endpoints is ready")
}

// A watch that tells late tells all the same.
func TestSlowWatch(t *testing.T) {
	begun := time.Now()
	a := startAPI(t)
	a.hold(true)
	a.put(slice("1", podA))
	c := a.listen("k8s:///chat.shop:grpc")
	waitFor(t, "a watch", func() bool { return len(a.requests()) == 1 })
	a.put(slice("2", podB))
	a.hold(false)
	c.has("a b")
	a.hold(true)
	for i := range 50 {
		a.put(slice("2", pod("b", fmt.Sprint("10.0.1.", i))))
	}
	a.put(slice("3", podC))
	a.hold(false)
	c.has("a b c")
	c.silent()
	c.mu.Lock()
	defer c.mu.Unlock()
	require.LessOrEqual(t, c.lists, 3+int(time.Since(begun)/pause), "changes that come together are told together")
}

// What the API server says no to is told, and the role that is needed. It
// is seen when the role is there.
func TestForbidden(t *testing.T) {
	for _, verb := range []string{"list", "watch"} {
		t.Run(verb, func(t *testing.T) {
			a := startAPI(t)
			a.noWatchList = verb == "list"
			a.forbidden = map[string]bool{verb: true}
			a.put(slice("1", podA))
			c := a.listen("k8s:///chat.shop:grpc")
			c.failed("endpointslices.discovery.k8s.io is forbidden: user \"system:serviceaccount:shop:web\" has no role: " +
				"the service account needs a role that allows list and watch of endpointslices")
			a.edit(func() { a.forbidden = nil })
			c.has("a")
			a.put(slice("2", podB))
			c.has("a b")
		})
	}
}

// An API server that cannot be reached is told at once, and found later.
func TestAPIServerIsDown(t *testing.T) {
	a := startAPI(t)
	a.stop()
	c := a.listen("k8s:///chat.shop:grpc")
	c.failed("k8s: service chat in namespace shop: API server: Get ")
	a.put(slice("1", podA))
	a.start()
	c.has("a")
}

// Close ends all goroutines, client-go's as well, whatever they wait for.
func TestCloseEndsAll(t *testing.T) {
	for name, prepare := range map[string]func(a *apiServer){
		"while it watches":    func(*apiServer) {},
		"while it waits":      func(a *apiServer) { a.hold(true) },
		"while it is down":    func(a *apiServer) { a.stop() },
		"while it is not let": func(a *apiServer) { a.forbidden = map[string]bool{"list": true, "watch": true} },
	} {
		t.Run(name, func(t *testing.T) {
			a := startAPI(t)
			a.put(slice("1", podA))
			prepare(a)
			b := a.builder()
			b.backoff = &wait.Backoff{Duration: time.Hour}
			c := &listening{T: t}
			r, err := b.Build(targetOf(t, "k8s:///chat.shop"), c, resolver.BuildOptions{})
			require.NoError(t, err)
			waitFor(t, "it asks or is told", func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return len(a.requests()) > 0 || len(c.errors) > 0
			})
			var closed atomic.Bool
			go func() {
				r.Close()
				closed.Store(true)
			}()
			waitFor(t, "it is closed", closed.Load)
			waitFor(t, "no goroutine is left", func() bool {
				stacks := make([]byte, 1<<20)
				stacks = stacks[:runtime.Stack(stacks, true)]
				return !strings.Contains(string(stacks), "client-go/tools/cache") && !strings.Contains(string(stacks), "kubernetes.(*s")
			})
		})
	}
}
