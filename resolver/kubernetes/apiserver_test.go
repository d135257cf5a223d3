package kubernetes

import (
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// apiServer is as much of a Kubernetes API server as EndpointSlices of a
// namespace need: lists and watches with versions, of which it forgets old ones,
// bookmarks, and lists that are watches. It refuses all else.
type apiServer struct {
	*testing.T
	addr   string
	server *httptest.Server // nil while it is down

	mu        sync.Mutex
	changed   chan struct{} // closed at each change of what follows
	objects   map[string]*discovery.EndpointSlice
	version   int
	forgotten int      // the last version that nobody can watch from
	history   []change // all there were
	bookmarks int      // the version of the last one
	ended     int      // requests up to this one are over
	endedAt   int      // the last version that they tell
	held      bool     // watches tell nothing
	asked     []request
	strange   []string // requests that are no list and no watch of EndpointSlices

	// How it differs from a good and new one.
	forbidden   map[string]bool // verbs
	gone        bool            // answers 410 itself, not as the first event of a watch
	noWatchList bool            // as before Kubernetes 1.32
	cuts        bool            // ends watches by breaking the connection
}

// change is a version of a slice.
type change struct {
	version int
	kind    watch.EventType
	object  *discovery.EndpointSlice
}

var tooOld = apierrors.NewResourceExpired("too old resource version")

// request is what was asked for: a list, a watch, or a watch that is a list.
type request struct{ verb, version string }

const watchList = "watch list"

// startAPI starts an API server for as long as the test runs.
func startAPI(t *testing.T) *apiServer {
	t.Helper()
	a := &apiServer{T: t, addr: "127.0.0.77:0", changed: make(chan struct{}), objects: map[string]*discovery.EndpointSlice{}, version: 10}
	a.start()
	t.Cleanup(func() {
		a.stop()
		require.Empty(t, a.strange)
	})
	return a
}

// start serves at the address where it was before.
func (a *apiServer) start() {
	l, err := net.Listen("tcp", a.addr)
	require.NoError(a, err)
	a.addr = l.Addr().String()
	a.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: a}}
	a.server.Start()
}

// stop ends all connections; new ones are refused.
func (a *apiServer) stop() {
	if a.server != nil {
		a.server.CloseClientConnections()
		a.endWatches()
		a.server.Close()
	}
	a.server = nil
}

// edit changes the server and has all watches look.
func (a *apiServer) edit(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	close(a.changed)
	a.changed = make(chan struct{})
}

// put makes or changes slices, each by an event of its own.
func (a *apiServer) put(all ...*discovery.EndpointSlice) {
	for _, s := range all {
		a.edit(func() {
			kind := watch.Modified
			if a.objects[s.Name] == nil {
				kind = watch.Added
			}
			a.objects[s.Name] = a.record(kind, s)
		})
	}
}

// remove deletes slices.
func (a *apiServer) remove(names ...string) {
	for _, name := range names {
		a.edit(func() {
			a.record(watch.Deleted, a.objects[name])
			delete(a.objects, name)
		})
	}
}

func (a *apiServer) record(kind watch.EventType, s *discovery.EndpointSlice) *discovery.EndpointSlice {
	a.version++
	s = s.DeepCopy()
	s.ResourceVersion = strconv.Itoa(a.version)
	a.history = append(a.history, change{a.version, kind, s})
	return s
}

// forget forgets all versions before the present one.
func (a *apiServer) forget() { a.edit(func() { a.forgotten = a.version }) }

// bookmark tells those who watch the present version.
func (a *apiServer) bookmark() { a.edit(func() { a.bookmarks = a.version }) }

// pass makes versions that are of other objects.
func (a *apiServer) pass(versions int) { a.edit(func() { a.version += versions }) }

// hold has watches tell nothing until it is called with false.
func (a *apiServer) hold(on bool) { a.edit(func() { a.held = on }) }

// endWatches ends the watches there are, as a server does after some minutes.
func (a *apiServer) endWatches() { a.edit(func() { a.ended, a.endedAt = len(a.asked), a.version }) }

// requests returns what was asked so far.
func (a *apiServer) requests() []request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

// count returns how many requests with a verb there were.
func (a *apiServer) count(verb string) (n int) {
	for _, r := range a.requests() {
		if r.verb == verb {
			n++
		}
	}
	return n
}

// ServeHTTP answers one request.
func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked := request{"list", r.FormValue("resourceVersion")}
	if r.FormValue("watch") == "true" {
		asked.verb = "watch"
		if r.FormValue("sendInitialEvents") == "true" {
			asked.verb = watchList
		}
	}
	a.mu.Lock()
	a.asked = append(a.asked, asked)
	number, forgotten := len(a.asked), a.forgotten
	known := r.Method == http.MethodGet && r.URL.Path == "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"
	if !known {
		a.strange = append(a.strange, r.Method+" "+r.URL.String())
	}
	forbidden := a.forbidden[asked.verb] || a.forbidden["watch"] && asked.verb == watchList
	a.mu.Unlock()
	selector, err := labels.Parse(r.FormValue("labelSelector"))
	version, _ := strconv.Atoi(asked.version)
	switch {
	case err != nil || !known || forbidden:
		fail(w, apierrors.NewForbidden(discovery.Resource("endpointslices"), "", errNoRole))
	case asked.verb == watchList && a.noWatchList:
		fail(w, apierrors.NewInvalid(discovery.SchemeGroupVersion.WithKind("EndpointSlice").GroupKind(), "", nil))
	case asked.verb == "list":
		a.answerList(w, selector)
	case asked.verb == "watch" && version < forgotten && a.gone:
		fail(w, tooOld)
	case asked.verb == "watch" && version < forgotten:
		write(w, http.StatusOK, event{watch.Error, statusOf(tooOld)})
	default:
		a.answerWatch(w, r, &watching{api: a, number: number, selector: selector, initial: asked.verb == watchList, version: version})
	}
}

// matching returns the slices there are, by name. The mutex is held.
func (a *apiServer) matching(selector labels.Selector) []discovery.EndpointSlice {
	var all []discovery.EndpointSlice
	for _, name := range slices.Sorted(maps.Keys(a.objects)) {
		if selector.Matches(labels.Set(a.objects[name].Labels)) {
			all = append(all, *a.objects[name])
		}
	}
	return all
}

func (a *apiServer) answerList(w http.ResponseWriter, selector labels.Selector) {
	a.mu.Lock()
	list := discovery.EndpointSliceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSliceList"},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(a.version)},
		Items:    a.matching(selector),
	}
	a.mu.Unlock()
	write(w, http.StatusOK, list)
}
