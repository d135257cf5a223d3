package kubernetes

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// builder asks the API server, as soon again as a test can wait for.
func (a *apiServer) builder() *builder {
	client, err := connect(&rest.Config{Host: "http://" + a.addr})
	require.NoError(a, err)
	return &builder{
		opts:    Options{Namespace: "shop"},
		connect: func() (connection, error) { return client, nil },
		backoff: &wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1},
	}
}

// listening is a channel that knows what it was told last.
type listening struct {
	resolver.ClientConn // nil: what is not overridden is not called
	*testing.T

	mu     sync.Mutex
	list   string
	lists  int
	errors []string
}

func (c *listening) UpdateState(s resolver.State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, ep := range s.Endpoints {
		all = append(all, lcresolver.ID(ep))
	}
	c.list = strings.Join(all, " ")
	c.lists++
	return nil
}

func (c *listening) ReportError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errors = append(c.errors, err.Error())
}

// listen resolves a target until the test ends.
func (a *apiServer) listen(target string) *listening {
	a.Helper()
	c := &listening{T: a.T}
	r, err := a.builder().Build(targetOf(a, target), c, resolver.BuildOptions{})
	require.NoError(a, err)
	a.Cleanup(r.Close)
	r.ResolveNow(resolver.ResolveNowOptions{})
	return c
}

// waitFor waits for a condition, so long that only a fault lets it fail.
func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.NoError(t, leastconntest.WaitFor(t.Context(), what, condition))
}

// has waits until the channel was told these endpoints.
func (c *listening) has(uids string) {
	c.Helper()
	waitFor(c.T, fmt.Sprintf("list %q", uids), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.list == uids
	})
}

// failed waits until the last error has these words.
func (c *listening) failed(words string) {
	c.Helper()
	waitFor(c.T, "error "+words, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.errors) > 0 && strings.Contains(c.errors[len(c.errors)-1], words)
	})
}

// silent checks that the channel was told no error.
func (c *listening) silent() {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Empty(c, c.errors)
}

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
	require.Less(t, c.lists, 20, "changes that come together are told together")
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
			c.failed("endpointslices.discovery.k8s.io is forbidden: User \"system:serviceaccount:shop:web\" has no role: " +
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
