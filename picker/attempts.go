package picker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

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

// Record is what picks note of an RPC that the application has given one.
type Record struct {
	tried   state.Tried
	waiting atomic.Pointer[time.Time] // since when the RPC waits for room
}

// WithRecord returns a context in which all picks count as attempts of one RPC,
// whatever gRPC reports of their ends, and what they note.
func WithRecord(ctx context.Context) (context.Context, *Record) {
	recorded.Store(true)
	r := &Record{}
	r.tried.StandForRPC()
	return context.WithValue(ctx, recordKey{}, r), r
}

// Waiting returns how long the RPC has been waiting for room, and whether it does.
func (r *Record) Waiting() (time.Duration, bool) {
	if since := r.waiting.Load(); since != nil {
		return time.Since(*since), true
	}
	return 0, false
}

// note notes how a pick of the RPC has ended. r may be nil.
func (r *Record) note(waits bool) {
	switch {
	case r == nil:
	case !waits:
		r.waiting.Store(nil)
	case r.waiting.Load() == nil:
		now := time.Now()
		r.waiting.Store(&now)
	}
}

// nothingKnown reports whether there is no RPC of which a pick has anything to know.
func nothingKnown() bool { return state.NothingKnown() && live.Load() == 0 && !recorded.Load() }

// explicitRecord returns the record that the application has given the RPC, or nil.
func explicitRecord(ctx context.Context) *Record {
	if ctx == nil || !recorded.Load() {
		return nil
	}
	r, _ := ctx.Value(recordKey{}).(*Record)
	return r
}

// triedBy returns the endpoints that the RPC which the context is of has tried, nil
// when nothing is known.
func triedBy(ctx context.Context, r *Record) *state.Tried {
	if r != nil {
		return &r.tried
	}
	if ctx != nil && live.Load() > 0 {
		if t, ok := records.Load(ctx.Done()); ok {
			return t.(*state.Tried)
		}
	}
	return nil
}

// noteFailed notes that the attempt that has the lease failed. When the RPC is over
// there is nothing to note it for, and explicit records have it already.
func noteFailed(ctx context.Context, lease state.Lease) {
	if ctx == nil || ctx.Done() == nil || ctx.Err() != nil {
		return
	}
	if r := explicitRecord(ctx); r != nil {
		r.tried.Failed()
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
	if r := explicitRecord(ctx); r != nil {
		r.tried.Remove(lease)
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
