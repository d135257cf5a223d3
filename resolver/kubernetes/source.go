package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/leastconn/grpc-leastconn/resolver/kubernetes/internal/target"
)

// source knows the EndpointSlices of one service. client-go's reflector, the
// part of an informer that lists and watches, keeps it up to date: other than
// an informer it hands over a new list as a whole.
type source struct {
	// Set once.
	target  target.Target
	client  patientClient
	backoff *wait.Backoff
	changed chan struct{} // holds a wish to look again

	mu     sync.Mutex
	slices map[string]*discovery.EndpointSlice // by name, never written to; nil until there was a list
	err    error                               // why the API server does not answer; nil once it does
}

func newSource(t target.Target, client EndpointSlices, backoff *wait.Backoff) *source {
	return &source{target: t, client: patientClient{client}, backoff: backoff, changed: make(chan struct{}, 1)}
}

// run lists and watches until the context ends.
func (s *source) run(ctx context.Context) {
	silent := time.AfterFunc(patience, s.isSilent)
	defer silent.Stop()
	lw := &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
	cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, s.client.EndpointSlices), &discovery.EndpointSlice{}, s, cache.ReflectorOptions{
		Name:    s.target.String(),
		Clock:   endingClock{ctx: ctx},
		Backoff: s.backoff,
	}).RunWithContext(ctx)
}

// known returns the slices in the order of their names, whether there was a
// list, and why the API server does not answer, if it does not.
func (s *source) known() (known []*discovery.EndpointSlice, listed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.slices)) {
		known = append(known, s.slices[name])
	}
	return known, s.slices != nil, s.err
}

// change calls f with the mutex held and has the resolver look again.
func (s *source) change(f func()) {
	s.mu.Lock()
	f()
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// isSilent tells that there is no list yet, and not why: it was asked for and nothing has
// come, as of a watch that is to begin with it.
func (s *source) isSilent() {
	s.mu.Lock()
	silent := s.slices == nil && s.err == nil
	s.mu.Unlock()
	if silent {
		s.answered(errSilent)
	}
}

func (s *source) answered(err error) {
	if err != nil {
		err = fmt.Errorf("API server: %w", err)
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("%w: the service account needs a role that allows list and watch of endpointslices, of discovery.k8s.io, in that namespace", err)
		}
	}
	s.change(func() { s.err = err })
}

func (s *source) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	opts.LabelSelector = discovery.LabelServiceName + "=" + s.target.Service
	list, err := s.client.List(ctx, opts)
	if err != nil {
		if !expired(err) && ctx.Err() == nil {
			s.answered(err)
		}
		return nil, err
	}
	return list, nil
}

func (s *source) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.LabelSelector = discovery.LabelServiceName + "=" + s.target.Service
	w, err := s.client.Watch(ctx, opts)
	isList := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	switch {
	case err == nil && !isList:
		s.answered(nil)
	case err == nil || ctx.Err() != nil || expired(err):
	case !isList || errors.Is(err, errHungUp) || utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err):
		// Of any other failed watch that would have been a list, the reflector makes a
		// list: older servers cannot answer the watch.
		s.answered(err)
	}
	return w, err
}

// expired reports whether an API server has forgotten the version that it was
// asked about, for which the reflector lists anew.
func expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// Add is part of the reflector's store, as is all that follows.
func (s *source) Add(object any) error {
	slice := object.(*discovery.EndpointSlice)
	s.change(func() { s.slices[slice.Name] = slice })
	return nil
}

// Update takes the slice's new form.
func (s *source) Update(object any) error { return s.Add(object) }

// Delete takes a slice away.
func (s *source) Delete(object any) error {
	slice := object.(*discovery.EndpointSlice)
	s.change(func() { delete(s.slices, slice.Name) })
	return nil
}

// Replace takes a list: there are no other slices.
func (s *source) Replace(objects []any, _ string) error {
	all := make(map[string]*discovery.EndpointSlice, len(objects))
	for _, object := range objects {
		slice := object.(*discovery.EndpointSlice)
		all[slice.Name] = slice
	}
	s.change(func() { s.slices, s.err = all, nil })
	return nil
}

// Resync has nothing to do.
func (s *source) Resync() error { return nil }

// endingClock is the system's clock, whose waits end with the context: the
// reflector waits for a server that refuses connections without looking at it.
type endingClock struct {
	clock.RealClock
	ctx context.Context
}

// After fires after a duration or when the context ends.
func (c endingClock) After(d time.Duration) <-chan time.Time {
	fired := make(chan time.Time, 1)
	timer := time.NewTimer(d)
	go func() {
		select {
		case now := <-timer.C:
			fired <- now
		case <-c.ctx.Done():
			timer.Stop()
			fired <- time.Now()
		}
	}()
	return fired
}
