// Package picker makes one pick of the least_conn policy: a lease from load
// state, then the pick of the child that the lease's node belongs to, then a
// Done that gives the lease back.
//
// It calls package state and the child pickers that package leastconnbalancer
// puts into views as the members' values.
package picker

import (
	"sync/atomic"

	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/state"
)

// Picker picks from the members that its view has at that moment, so one that
// was published long ago chooses as the newest does. It is safe for concurrent
// use and never blocks.
type Picker struct{ view *state.View }

// New returns a picker over the view, whose values must be balancer.Pickers.
func New(view *state.View) *Picker { return &Picker{view: view} }

// Pick implements balancer.Picker. The lease is given back by the first call of
// the result's Done, or at once when the child does not pick. With an empty
// view the RPC waits for the next picker.
func (p *Picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	lease, child, ok := p.view.Acquire()
	if !ok {
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	}
	res, err := child.(balancer.Picker).Pick(info)
	if err != nil {
		lease.Release()
		return balancer.PickResult{}, err
	}
	if res.Done == nil {
		res.Done = func(balancer.DoneInfo) { lease.Release() }
	} else {
		res.Done = both(lease, res.Done)
	}
	return res, nil
}

// both returns a Done that gives the lease back and passes the first call on to
// the child's. A finished RPC may be kept for long; so the child's is dropped.
func both(lease state.Lease, done func(balancer.DoneInfo)) func(balancer.DoneInfo) {
	var child atomic.Pointer[func(balancer.DoneInfo)]
	child.Store(&done)
	return func(info balancer.DoneInfo) {
		if lease.Release() {
			(*child.Swap(nil))(info)
		}
	}
}
