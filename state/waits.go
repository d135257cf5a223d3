package state

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// waits and reservations are what RPCs wait for, in all ledgers: below a policy that
// draws among balancers, such as weighted_target, an RPC may wait in several and is
// served in one.
var (
	waits        byRPC[*waiter]
	reservations byRPC[*reservation]
)

// byRPC is what RPCs have, by the Done channel of each.
type byRPC[W comparable] struct {
	mu    sync.Mutex   // held to change what follows; a ledger's mutex comes before it
	lists sync.Map     // of []W, which do not change
	rpcs  atomic.Int64 // so that nothing is looked up where nobody waits
}

func (b *byRPC[W]) add(rpc <-chan struct{}, w W) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ws := b.of(rpc)
	if len(ws) == 0 {
		b.rpcs.Add(1)
	}
	b.lists.Store(rpc, append(slices.Clip(ws), w))
}

func (b *byRPC[W]) remove(rpc <-chan struct{}, w W) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ws := slices.DeleteFunc(slices.Clone(b.of(rpc)), func(o W) bool { return o == w })
	if len(ws) > 0 {
		b.lists.Store(rpc, ws)
		return
	}
	b.lists.Delete(rpc)
	b.rpcs.Add(-1)
}

// none reports whether no RPC has anything.
func (b *byRPC[W]) none() bool { return b.rpcs.Load() == 0 }

// of returns what an RPC has.
func (b *byRPC[W]) of(rpc <-chan struct{}) []W {
	if b.none() {
		return nil
	}
	if ws, ok := b.lists.Load(rpc); ok {
		return ws.([]W)
	}
	return nil
}

// NothingKnown reports whether there is no RPC of which a pick has anything to know, in
// any ledger: that it waits, is a session's or has a cost.
func NothingKnown() bool {
	return waits.none() && reservations.none() && !marked.Load() && !costed.Load()
}

// StopWaiting ends all waits of the RPC that ctx is of, and gives back what is reserved
// for it: it has been served, or its attempt has ended.
func StopWaiting(ctx context.Context) {
	if ctx == nil || waits.none() && reservations.none() {
		return
	}
	rpc := ctx.Done()
	for _, w := range waits.of(rpc) {
		if stop := w.cancelUnlocked(); stop != nil {
			stop()
		}
	}
	for _, res := range reservations.of(rpc) {
		if stop := res.cancelUnlocked(); stop != nil {
			stop()
		}
	}
}

// PauseWaiting has the RPC that ctx is of passed over, since its attempt may have ended.
// It keeps its places until it asks for room again. Where none was served, and RPCs
// are again, it waits once more until it is seen, or is not. asked, which may be nil, is
// the endpoint set whose picker says so: while it serves RPCs the picker is an old one.
func PauseWaiting(ctx context.Context, asked *EndpointSet) {
	if ctx == nil || waits.none() {
		return
	}
	for _, w := range waits.of(ctx.Done()) {
		w.ifNotOver(func() {
			if w.set != asked || len(asked.queue.queueSets) == 0 {
				w.pause()
			}
		})
	}
}

// ifNotOver takes the ledger's mutex.
func (w *waiter) ifNotOver(do func()) {
	mu := w.set.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	if !w.is(phaseOver) {
		do()
	}
}

// passOn has an RPC that waits in r now give up what it was granted in other endpoint
// sets: it is not there to take it up. It is offered room there again later, and where it
// has lapsed before, since where it asks is chance.
func passOn(rpc <-chan struct{}, r *EndpointSet) {
	for _, w := range waits.of(rpc) {
		if w.set != r && !w.is(phaseQueued) {
			w.ifNotOver(w.offerLater)
		}
	}
}

// offerLater gives up what w was granted, and has it wait again after some time.
func (w *waiter) offerLater() {
	if w.is(phaseGranted) {
		w.lapse()
	}
	if l := w.set.ledger; w.is(phaseLapsed) && w.timeout == notTimed {
		l.setTimeout(w, l.clock.read()+lapseAfter)
	}
}

// waitsElsewhere reports whether w's RPC is queued in another endpoint set.
func (w *waiter) waitsElsewhere() bool {
	return slices.ContainsFunc(waits.of(w.rpc), func(o *waiter) bool { return o != w && o.is(phaseQueued) })
}

// StillQueued reports whether the RPC that ctx is of waits in the endpoint set alone,
// and has not been given room, nor has it to show that it still waits. It takes no lock.
func (r *EndpointSet) StillQueued(ctx context.Context) bool {
	if ctx == nil || waits.none() {
		return false
	}
	ws := waits.of(ctx.Done())
	return len(ws) == 1 && ws[0].set == r && ws[0].is(phaseQueued) && !ws[0].doubtful.Load()
}
