package kubernetes

import (
	"context"
	"io"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leastconn/grpc-leastconn/resolver/kubernetes/internal/target"
)

// hangingClient has one pod more at each answer, and is silent where the test says so: it neither
// answers nor breaks the connection.
type hangingClient struct {
	hangs   func(verb string, number int) bool // number counts the requests of the verb
	hangsUp bool                               // ends each connection instead

	mu      sync.Mutex
	numbers map[string]int
	pods    int
}

// ask reports whether a request is answered.
func (c *hangingClient) ask(verb string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.numbers[verb]++
	return !c.hangs(verb, c.numbers[verb])
}

// next has a pod more in the slice.
func (c *hangingClient) next() *discovery.EndpointSlice {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods++
	s := slice("1")
	s.ResourceVersion = strconv.Itoa(c.pods)
	for i := range c.pods {
		s.Endpoints = append(s.Endpoints, pod(string(rune('a'+i)), "10.0.0."+strconv.Itoa(i+1)))
	}
	return s
}

func (c *hangingClient) List(ctx context.Context, _ metav1.ListOptions) (*discovery.EndpointSliceList, error) {
	if c.hangsUp {
		select {
		case <-time.After(time.Second): // client-go tries again
		case <-ctx.Done():
		}
		return nil, io.EOF
	}
	if !c.ask("list") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s := c.next()
	return &discovery.EndpointSliceList{ListMeta: metav1.ListMeta{ResourceVersion: s.ResourceVersion}, Items: []discovery.EndpointSlice{*s}}, nil
}

func (c *hangingClient) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	initial := opts.SendInitialEvents != nil
	switch {
	case c.hangsUp:
		return watch.NewEmptyWatch(), nil // as client-go does then
	case initial && c.ask("initial"):
		return nil, apierrors.NewBadRequest("an API server that cannot")
	case !initial && !c.ask("begin"):
		<-ctx.Done()
		return nil, ctx.Err()
	}
	w := watch.NewFakeWithChanSize(1, false)
	if !initial && c.ask("event") {
		w.Modify(c.next())
	}
	context.AfterFunc(ctx, w.Stop) // as the connection of a request does
	return w, nil
}

// Where an API server accepts requests and is silent, they are given up and asked again, what has
// changed is seen, and the reason is told.
func TestSilentAPIServer(t *testing.T) {
	const silent = "k8s: service chat in namespace shop: API server: no answer within 30s"
	for name, test := range map[string]struct {
		hangs  func(verb string, number int) bool
		has    string
		within time.Duration
		told   []string
	}{
		"list":             {func(verb string, n int) bool { return verb == "list" && n < 3 }, "[a b]", 2 * time.Minute, []string{silent}},
		"watch":            {func(verb string, n int) bool { return verb == "begin" && n == 1 }, "[a b c]", 2 * time.Minute, []string{silent}},
		"events":           {func(verb string, n int) bool { return verb == "event" && n == 1 }, "[a b]", 11 * time.Minute, nil},
		"list as a watch":  {func(verb string, n int) bool { return verb == "initial" && n == 1 }, "[a b]", 11 * time.Minute, []string{silent}},
		"all, for an hour": {func(verb string, _ int) bool { return verb != "initial" && time.Since(epoch) < time.Hour }, "[a b]", 62 * time.Minute, []string{silent}},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T) {
				parsed, err := target.Parse(targetOf(t, "k8s:///chat.shop:grpc").URL, target.Target{})
				require.NoError(t, err)
				c := &listening{T: t}
				r := newServiceResolver(parsed, c)
				r.start(newSource(parsed, &hangingClient{hangs: test.hangs, numbers: map[string]int{}}, nil))
				defer r.Close()
				time.Sleep(test.within)
				synctest.Wait()
				c.mu.Lock()
				defer c.mu.Unlock()
				require.Equal(t, test.has, "["+c.list+"]")
				require.Equal(t, test.told, c.errors)
			})
		})
	}
}

// plainClient is as those of client-go's fake clientsets: it says that it cannot list by a
// watch.
type plainClient struct{ *hangingClient }

func (plainClient) IsWatchListSemanticsUnSupported() bool { return true }

// A client that cannot list by a watch is not asked to.
func TestFakeClients(t *testing.T) {
	inFakeTime(t, func(t *testing.T) {
		parsed, err := target.Parse(targetOf(t, "k8s:///chat.shop:grpc").URL, target.Target{})
		require.NoError(t, err)
		c, r := &hangingClient{hangs: func(string, int) bool { return false }, numbers: map[string]int{}}, newServiceResolver(parsed, &listening{T: t})
		r.start(newSource(parsed, plainClient{c}, nil))
		synctest.Wait()
		r.Close()
		require.Equal(t, map[string]int{"list": 1, "begin": 1, "event": 1}, c.numbers)
	})
}

// One that accepts connections and ends them is told, as one that refuses them.
func TestAPIServerHangsUp(t *testing.T) {
	inFakeTime(t, func(t *testing.T) {
		parsed, err := target.Parse(targetOf(t, "k8s:///chat.shop:grpc").URL, target.Target{})
		require.NoError(t, err)
		s := newSource(parsed, &hangingClient{hangsUp: true}, nil)
		c := &listening{T: t}
		r := newServiceResolver(parsed, c)
		r.start(s)
		defer r.Close()
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		require.NotEmpty(t, c.errors)
		require.Equal(t, "k8s: service chat in namespace shop: API server: it ended the connection without an answer", c.errors[0])
	})
}

// inFakeTime runs a test of client-go's reflector, whose handling of errors would wait
// until the time when the program has started.
func inFakeTime(t *testing.T, test func(*testing.T)) {
	t.Helper()
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	defer func() { utilruntime.ErrorHandlers = handlers }()
	synctest.Test(t, test)
}

// epoch is when fake time begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
