package picker

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/state"
)

// The attempts of one RPC have no name in a pick, but their contexts share one
// Done channel, which no other RPC has: gRPC derives a cancelable context for
// each RPC and the attempts' contexts from it. A record is kept under it from
// the first attempt that fails until the RPC ends.
var (
	records sync.Map     // of *state.Tried, by Done channel
	live    atomic.Int64 // records, so that without failures nothing is looked up
)

// recorded is set once a program uses explicit records; before, contexts are
// not searched for one.
var recorded atomic.Bool

type recordKey struct{}

// WithRecord returns a context in which all picks count as attempts of one RPC,
// whatever gRPC reports of their ends.
func WithRecord(ctx context.Context) context.Context {
	recorded.Store(true)
	return context.WithValue(ctx, recordKey{}, new(state.Tried))
}

// recordOf returns the record of the RPC that the context is of, nil when there
// is none, and whether it is an explicit one.
func recordOf(ctx context.Context) (t *state.Tried, explicit bool) {
	if ctx == nil {
		return nil, false
	}
	if recorded.Load() {
		if t, ok := ctx.Value(recordKey{}).(*state.Tried); ok {
			return t, true
		}
	}
	if t, ok := records.Load(ctx.Done()); ok {
		return t.(*state.Tried), false
	}
	return nil, false
}

// noteFailed notes that the attempt that has the lease failed. When the RPC is over
// there is nothing to note it for, and explicit records have it already.
func noteFailed(ctx context.Context, lease state.Lease) {
	if ctx == nil || ctx.Done() == nil || ctx.Err() != nil {
		return
	}
	if recorded.Load() && ctx.Value(recordKey{}) != nil {
		return
	}
	t, ok := records.Load(ctx.Done())
	if !ok {
		t, ok = records.LoadOrStore(ctx.Done(), new(state.Tried))
		if !ok {
			live.Add(1)
			context.AfterFunc(ctx, func() {
				records.Delete(ctx.Done())
				live.Add(-1)
			})
		}
	}
	t.(*state.Tried).Add(lease)
}

// forgetUnused takes back what an explicit record has noted of a pick that came to
// nothing.
func forgetUnused(ctx context.Context, lease state.Lease) {
	if !recorded.Load() {
		return
	}
	if t, explicit := recordOf(ctx); explicit {
		t.Remove(lease)
	}
}

// noteUnsuccessful notes the end of an attempt that did not succeed. gRPC hides
// an error that it sees first while it sends; but no success receives nothing.
func noteUnsuccessful(ctx context.Context, lease state.Lease, info balancer.DoneInfo) {
	if !info.BytesSent { // no attempt: the connection was gone before the RPC had it
		forgetUnused(ctx, lease)
		return
	}
	noteFailed(ctx, lease)
}
