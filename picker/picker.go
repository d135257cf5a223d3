// Package picker makes one pick of the least_conn policy: the attempts that the
// RPC has made already, a lease from load state, the pick of the child that the
// lease's node belongs to, and a Done that gives the lease back.
//
// It calls package state and the child pickers that package leastconnbalancer
// puts into views as the members' values.
package picker

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/state"
)

// Picker picks from the members that its views have at that moment, so one that
// was published long ago chooses as the newest does. It is safe for concurrent
// use and never blocks.
type Picker struct {
	views atomic.Pointer[[]*state.View] // nil once closed
}

// New returns a picker over views of one roster, whose values must be
// balancer.Pickers. First attempts go to the first view, later ones to nodes
// that were not tried, in the first view that has one.
func New(views ...*state.View) *Picker {
	p := &Picker{}
	p.views.Store(&views)
	return p
}

// Close lets go of the views: gRPC may keep the last picker of a balancer that
// is closed for as long as a finished RPC is kept. RPCs that still pick from it
// wait for the next one.
func (p *Picker) Close() { p.views.Store(nil) }

// Pick implements balancer.Picker. The lease is given back by the first call of
// the result's Done, or at once when the child does not pick. With an empty
// view the RPC waits for the next picker.
func (p *Picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	lease, child, ok := p.acquire(info.Ctx)
	if !ok {
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	}
	res, err := child.(balancer.Picker).Pick(info)
	if err != nil {
		unused(info.Ctx, lease)
		lease.Release()
		return balancer.PickResult{}, err
	}
	ctx := info.Ctx
	if res.Done == nil {
		res.Done = func(info balancer.DoneInfo) {
			if info.Err != nil || !info.BytesReceived {
				unsuccessful(ctx, lease, info)
			}
			lease.Release()
		}
	} else {
		res.Done = both(ctx, lease, res.Done)
	}
	return res, nil
}

func (p *Picker) acquire(ctx context.Context) (state.Lease, any, bool) {
	views := p.views.Load()
	if views == nil {
		return state.Lease{}, nil, false
	}
	if live.Load() == 0 && !recorded.Load() {
		return (*views)[0].Acquire()
	}
	tried, explicit := recordOf(ctx)
	if tried == nil {
		return (*views)[0].Acquire()
	}
	from := *views
	if tried.Empty() { // the first attempt keeps to its level
		from = from[:1]
	}
	lease, child, ok := elsewhere(from, tried)
	if !ok { // every node was tried: the RPC starts over
		if lease, child, ok = (*views)[0].Acquire(); ok {
			tried.Reset()
		}
	}
	if explicit {
		tried.Add(lease)
	}
	return lease, child, ok
}

func elsewhere(views []*state.View, tried *state.Tried) (state.Lease, any, bool) {
	for _, v := range views {
		if lease, child, ok := v.AcquireElsewhere(tried); ok {
			return lease, child, true
		}
	}
	return state.Lease{}, nil, false
}

// both returns a Done that gives the lease back and passes the first call on to
// the child's. A finished RPC may be kept for long; so the child's is dropped.
func both(ctx context.Context, lease state.Lease, done func(balancer.DoneInfo)) func(balancer.DoneInfo) {
	var child atomic.Pointer[func(balancer.DoneInfo)]
	child.Store(&done)
	return func(info balancer.DoneInfo) {
		if info.Err != nil || !info.BytesReceived {
			unsuccessful(ctx, lease, info)
		}
		if lease.Release() {
			(*child.Swap(nil))(info)
		}
	}
}
