package state

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// waits are the waiters of all ledgers by RPC: below a policy that draws among
// balancers, such as weighted_target, an RPC may wait in several and is served in one.
var waits struct {
	mu    sync.Mutex   // held to change what follows; a ledger's mutex comes before it
	byRPC sync.Map     // of []*waiter, which do not change, by the RPC's Done channel
	rpcs  atomic.Int64 // so that nothing is looked up where nobody waits
}

func register(w *waiter) {
	waits.mu.Lock()
	defer waits.mu.Unlock()
	ws := waitsOf(w.rpc)
	if len(ws) == 0 {
		waits.rpcs.Add(1)
	}
	waits.byRPC.Store(w.rpc, append(slices.Clip(ws), w))
}

func unregister(w *waiter) {
	waits.mu.Lock()
	defer waits.mu.Unlock()
	ws := slices.DeleteFunc(slices.Clone(waitsOf(w.rpc)), func(o *waiter) bool { return o == w })
	if len(ws) > 0 {
		waits.byRPC.Store(w.rpc, ws)
		return
	}
	waits.byRPC.Delete(w.rpc)
	waits.rpcs.Add(-1)
}

// waitsOf returns the waiters of an RPC.
func waitsOf(rpc <-chan struct{}) []*waiter {
	if ws, ok := waits.byRPC.Load(rpc); ok {
		return ws.([]*waiter)
	}
	return nil
}

// StopWaiting ends all waits of the RPC that ctx is of: it has been served, or its
// attempt has ended.
func StopWaiting(ctx context.Context) {
	if ctx == nil || waits.rpcs.Load() == 0 {
		return
	}
	for _, w := range waitsOf(ctx.Done()) {
		if stop := w.cancelUnlocked(); stop != nil {
			stop()
		}
	}
}

// PauseWaiting has the RPC that ctx is of passed over, since its attempt may have ended.
// It keeps its places until it asks for room again. Where none was served, and RPCs
// are again, it waits once more until it is seen, or is not. asked, which may be nil, is
// the endpoint set whose picker says so: while it serves RPCs the picker is an old one.
func PauseWaiting(ctx context.Context, asked *EndpointSet) {
	if ctx == nil || waits.rpcs.Load() == 0 {
		return
	}
	for _, w := range waitsOf(ctx.Done()) {
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
// sets: it is not there to take it up. It is offered room there again later, since
// where it waits is chance.
func passOn(rpc <-chan struct{}, r *EndpointSet) {
	if waits.rpcs.Load() == 0 {
		return
	}
	for _, w := range waitsOf(rpc) {
		if w.set != r && w.is(phaseGranted) {
			w.ifNotOver(func() {
				if w.is(phaseGranted) {
					w.lapse()
					w.set.ledger.setTimeout(w, w.set.ledger.clock.read()+lapseAfter)
				}
			})
		}
	}
}

// waitsElsewhere reports whether w's RPC is queued in another endpoint set.
func (w *waiter) waitsElsewhere() bool {
	return slices.ContainsFunc(waitsOf(w.rpc), func(o *waiter) bool { return o != w && o.is(phaseQueued) })
}

// StillQueued reports whether the RPC that ctx is of waits in the endpoint set alone,
// and has not been given room, nor has it to show that it still waits. It takes no lock.
func (r *EndpointSet) StillQueued(ctx context.Context) bool {
	if ctx == nil || waits.rpcs.Load() == 0 {
		return false
	}
	ws := waitsOf(ctx.Done())
	return len(ws) == 1 && ws[0].set == r && ws[0].is(phaseQueued) && !ws[0].doubtful.Load()
}
