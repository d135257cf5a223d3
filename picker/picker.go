// Package picker makes one pick of the least_conn policy: the attempts that the
// RPC has made already, a lease from load state, the pick of the child that the
// lease's endpoint belongs to, and a Done that gives the lease back.
//
// It calls package state and the child pickers that package leastconnbalancer
// puts into ready sets as the members' values. It serves that package alone and
// promises no compatibility: programs use leastconnbalancer.
package picker

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/state"
)

// Picker picks from the members that its ready sets have at that moment, so one
// that was published long ago chooses as the newest does. It is safe for
// concurrent use and never blocks.
type Picker struct {
	readySets atomic.Pointer[[]*state.ReadySet] // nil once closed
}

// New returns a picker over ready sets of one endpoint set, whose values must be
// SubConns, as gRPC knows them, or child pickers. First attempts go to the first ready
// set, and to those after it when all are full there; later ones to endpoints that were
// not tried, in the first ready set that has one.
func New(readySets ...*state.ReadySet) *Picker {
	p := &Picker{}
	p.readySets.Store(&readySets)
	return p
}

// Close lets go of the ready sets: gRPC may keep the last picker of a balancer
// that is closed for as long as a finished RPC is kept. RPCs that still pick from
// it wait for the next one.
func (p *Picker) Close() { p.readySets.Store(nil) }

// Pick implements balancer.Picker. The lease is given back by the first call of
// the result's Done, or at once when the child does not pick. With an empty ready
// set, or while all endpoints are full, the RPC waits for the next
// picker; when it may not wait for room, it fails with RESOURCE_EXHAUSTED.
func (p *Picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	lease, value, err := p.acquire(info.Ctx)
	if err != nil {
		endAttempt(info.Ctx, err, nil)
		return balancer.PickResult{}, err
	}
	if sc, ok := value.(balancer.SubConn); ok {
		return balancer.PickResult{SubConn: sc, Done: releaseWhenDone(info.Ctx, lease)}, nil
	}
	return pickChild(value.(balancer.Picker), info, lease)
}

// pickChild is Pick with the lease on the child's endpoint.
func pickChild(child balancer.Picker, info balancer.PickInfo, lease state.Lease) (balancer.PickResult, error) {
	res, err := child.Pick(info)
	if err != nil {
		forgetUnused(info.Ctx, lease)
		lease.Release()
		endAttempt(info.Ctx, err, nil)
		return balancer.PickResult{}, err
	}
	if sc, ok := res.SubConn.(*SubConn); ok {
		res.SubConn = sc.grpc
	}
	if res.Done == nil {
		res.Done = releaseWhenDone(info.Ctx, lease)
	} else {
		res.Done = releaseThen(info.Ctx, lease, res.Done)
	}
	return res, nil
}

// releaseWhenDone returns a Done that gives the lease back.
func releaseWhenDone(ctx context.Context, lease state.Lease) func(balancer.DoneInfo) {
	return func(info balancer.DoneInfo) {
		if info.Err == nil && info.BytesReceived {
			lease.Succeed()
			return
		}
		noteUnsuccessful(ctx, lease, info)
		release(lease, info)
	}
}

// acquire chooses an endpoint's value with a lease on the endpoint.
func (p *Picker) acquire(ctx context.Context) (state.Lease, any, error) {
	readySets := p.readySets.Load()
	if readySets == nil {
		return state.Lease{}, nil, balancer.ErrNoSubConnAvailable
	}
	first := (*readySets)[0]
	if nothingKnown() {
		if lease, value, ok := first.Acquire(); ok {
			return lease, value, nil
		}
	}
	return acquireKnown(ctx, first, *readySets)
}

// acquireKnown is acquire for an RPC of which something may be known, or that Acquire has
// turned away.
func acquireKnown(ctx context.Context, first *state.ReadySet, readySets []*state.ReadySet) (state.Lease, any, error) {
	if first.EndpointSet().StillQueued(ctx) {
		return state.Lease{}, nil, balancer.ErrNoSubConnAvailable // woken with all others
	}
	record := explicitRecord(ctx)
	tried := triedBy(ctx, record)
	if tried == nil && state.MarkOf(ctx) == nil && state.CostOf(ctx) == nil {
		if lease, value, ok := first.Acquire(); ok {
			state.StopWaiting(ctx)
			return lease, value, nil
		}
	}
	lease, value, outcome := first.EndpointSet().AcquireOrQueue(ctx, tried, readySets...)
	record.note(outcome == state.Queued)
	switch outcome {
	case state.Chosen:
		if record != nil {
			tried.Add(lease)
		}
		return lease, value, nil
	case state.Refused:
		return state.Lease{}, nil, errFull
	}
	return state.Lease{}, nil, balancer.ErrNoSubConnAvailable
}

// errFull ends an RPC that finds no room and may not wait for it.
var errFull = status.Error(codes.ResourceExhausted,
	"least_conn: all endpoints are full (maxInFlight), and no more RPCs may wait for room (onFull, maxQueued)")

// release gives the lease back. An attempt whose end blames the endpoint weighs on it
// for a while.
func release(lease state.Lease, info balancer.DoneInfo) bool {
	switch {
	case info.Err == nil && info.BytesReceived:
		return lease.Succeed()
	case blames(info):
		return lease.Fail()
	}
	return lease.Release()
}

// releaseThen returns a Done that gives the lease back and passes the first call on to
// the child's. A finished RPC may be kept for long; so the child's is dropped.
func releaseThen(ctx context.Context, lease state.Lease, done func(balancer.DoneInfo)) func(balancer.DoneInfo) {
	var child atomic.Pointer[func(balancer.DoneInfo)]
	child.Store(&done)
	return func(info balancer.DoneInfo) {
		if info.Err != nil || !info.BytesReceived {
			noteUnsuccessful(ctx, lease, info)
		}
		if release(lease, info) {
			(*child.Swap(nil))(info)
		}
	}
}
