package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
	"github.com/leastconn/grpc-leastconn/resolver/kubernetes/internal/target"
)

var logger = grpclog.Component("k8s-resolver")

// serviceResolver tells one channel of one service, from start to Close.
type serviceResolver struct {
	// Set once.
	target target.Target
	cc     resolver.ClientConn
	cancel context.CancelFunc
	done   sync.WaitGroup

	// Only used by the goroutine that calls cc.
	list     list
	lastSent []endpoint
	sentAt   time.Time // zero before the first list
	reported string    // the error that cc was told of, until the cause is over
	warned   string    // the last warning about what is left out
}

func newServiceResolver(t target.Target, cc resolver.ClientConn) *serviceResolver {
	return &serviceResolver{target: t, cc: cc, list: list{}}
}

func (r *serviceResolver) start(s *source) {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.done.Go(func() { s.run(ctx) })
	r.done.Go(func() { r.run(ctx, s) })
}

// ResolveNow has nothing to do: the API server tells of changes by itself.
func (r *serviceResolver) ResolveNow(resolver.ResolveNowOptions) {}

// Close ends the watch and returns when the goroutines have ended: the channel
// is not called any more.
func (r *serviceResolver) Close() {
	r.cancel()
	r.done.Wait()
}

// run tells the channel what is new until the context ends.
func (r *serviceResolver) run(ctx context.Context, s *source) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		case <-timer.C:
		}
		timer.Stop()
		if next := r.look(time.Now(), s); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// look passes on what is known now. It returns when to look again though nothing
// has changed; zero: not at all.
func (r *serviceResolver) look(now time.Time, s *source) (next time.Time) {
	known, listed, err := s.known()
	if err != nil {
		r.report(err)
	}
	if !listed {
		return time.Time{}
	}
	if earliest := r.sentAt.Add(pause); !r.sentAt.IsZero() && now.Before(earliest) {
		return earliest
	}
	merged := merge(r.target, known)
	next = r.list.update(now, merged)
	endpoints := r.list.endpoints()
	// The first list is not told while it is empty: then there is only the error.
	if !slices.EqualFunc(endpoints, r.lastSent, endpoint.equal) {
		r.lastSent, r.sentAt = endpoints, now
		// The policy refuses an empty list and goes by it. It has no reason to refuse
		// any other.
		_ = r.cc.UpdateState(r.state(endpoints))
	}
	r.warn(merged.ignored)
	switch {
	case err != nil:
	case len(endpoints) == 0:
		r.report(merged.empty)
	default:
		r.reported = ""
	}
	return next
}

// about says which service an error is of.
func (r *serviceResolver) about(cause error) error {
	return fmt.Errorf("%s: service %s in namespace %s: %w", Scheme, r.target.Service, r.target.Namespace, cause)
}

// warn logs what is left out, once.
func (r *serviceResolver) warn(cause error) {
	warning := ""
	if cause != nil {
		warning = r.about(cause).Error()
	}
	if warning != r.warned && warning != "" {
		logger.Warning(warning)
	}
	r.warned = warning
}

// report tells the channel of an error, once.
func (r *serviceResolver) report(cause error) {
	err := r.about(cause)
	if err.Error() != r.reported {
		r.reported = err.Error()
		r.cc.ReportError(err)
	}
}

// state is what the channel is told. Targets that differ only in how they are
// written share their load.
func (r *serviceResolver) state(endpoints []endpoint) resolver.State {
	state := lcresolver.SetResourceKey(resolver.State{Endpoints: make([]resolver.Endpoint, len(endpoints))}, r.target.String())
	for i, e := range endpoints {
		var ep resolver.Endpoint
		for _, a := range e.addresses {
			ep.Addresses = append(ep.Addresses, resolver.Address{Addr: a})
		}
		if e.uid != "" {
			ep = lcresolver.SetID(ep, e.uid)
		}
		if e.draining {
			ep = lcresolver.SetWeight(ep, 0)
		}
		if e.priority > 0 {
			ep = lcresolver.SetPriority(ep, e.priority)
		}
		state.Endpoints[i] = ep
	}
	return state
}
