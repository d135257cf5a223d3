package state_test

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// worker is one of many goroutines that use a ledger at once: it changes what
// it has listed itself, and acquires wherever it likes.
type worker struct {
	sets        []*state.ReadySet // of all workers
	endpointSet *state.EndpointSet
	readySet    *state.ReadySet
	listed      map[string]*state.Member
	live        []state.Lease
	ctxs        []context.Context // of RPCs
	ends        []context.CancelFunc
	spent       []state.Lease
	twice       int // a release that should have been refused
	lost        int // a live lease that was
}

func (w *worker) run(steps int) {
	for range steps {
		switch rand.IntN(17) {
		case 0, 1, 2, 3:
			if lease, _, ok := w.sets[rand.IntN(len(w.sets))].Acquire(); ok {
				w.live = append(w.live, lease)
			}
		case 4, 5, 6:
			w.release()
		case 7:
			if n := len(w.spent); n > 0 && w.spent[rand.IntN(n)].Release() {
				w.twice++
			}
		case 8:
			w.relist()
		case 9, 10:
			for a, m := range w.listed {
				w.readySet.Set(m, rand.Uint32N(4), a)
				break
			}
		case 11:
			for _, m := range w.listed {
				w.readySet.Remove(m)
				break
			}
		case 12, 13:
			w.acquireOrQueue()
		case 14:
			for _, m := range w.listed {
				m.SetMaxInFlight(rand.Uint32N(4))
				break
			}
		case 15:
			for _, m := range w.listed {
				w.readySet.SetConnecting(m, rand.Uint32N(4), time.Now().Add(5*time.Millisecond))
				break
			}
		default:
			w.guard()
		}
	}
	for _, end := range w.ends {
		end()
	}
	for len(w.live) > 0 {
		w.release()
	}
}

func (w *worker) release() {
	last := len(w.live) - 1
	if last < 0 {
		return
	}
	lease := w.live[last]
	w.live = w.live[:last]
	end := state.Lease.Release
	if rand.IntN(4) == 0 {
		end = state.Lease.Fail
	}
	if !end(lease) {
		w.lost++
	}
	w.spent = append(w.spent, lease)
}

// acquireOrQueue is that of an RPC that waits, or may get one.
func (w *worker) acquireOrQueue() {
	if len(w.ctxs) == 0 || rand.IntN(3) == 0 {
		ctx, end := context.WithCancel(context.Background())
		w.ctxs, w.ends = append(w.ctxs, ctx), append(w.ends, end)
	}
	i := rand.IntN(len(w.ctxs))
	lease, _, outcome := w.endpointSet.AcquireOrQueue(w.ctxs[i], nil, w.readySet)
	if outcome == state.Chosen {
		w.live = append(w.live, lease)
	}
	if rand.IntN(4) == 0 {
		w.ends[i]()
	}
}

// guard changes the guards, or where RPCs are served, or begins a ramp.
func (w *worker) guard() {
	switch rand.IntN(3) {
	case 0:
		w.endpointSet.SetGuards(state.Guards{
			FailurePenalty: time.Duration(rand.IntN(3)) * 5 * time.Millisecond,
			SlowStart:      state.SlowStart{Window: time.Duration(rand.IntN(3)) * time.Second, MinWeightPercent: 10, Aggression: 1},
			MaxQueued:      rand.IntN(4) * 10,
			Wake:           make(chan struct{}, 1),
		})
	case 1:
		w.endpointSet.SetQueueSets(w.readySet)
	default:
		for _, m := range w.listed {
			m.StartSlowly()
			break
		}
	}
}

// relist drops one endpoint and lists another.
func (w *worker) relist() {
	a := names(20)[rand.IntN(20)]
	if w.listed[a] != nil {
		return
	}
	var leave []*state.Member
	for old, m := range w.listed {
		leave = append(leave, m)
		delete(w.listed, old)
		break
	}
	m := w.endpointSet.Update(leave, []state.Identity{{Addrs: []string{a}}})[0]
	w.listed[a] = m
	w.readySet.Set(m, 1+rand.Uint32N(3), a)
}
