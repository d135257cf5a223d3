package picker_test

import (
	"context"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/picker"
	"github.com/leastconn/grpc-leastconn/state"
)

// still answers without noting what it was asked.
type still struct{ res balancer.PickResult }

func (s still) Pick(balancer.PickInfo) (balancer.PickResult, error) { return s.res, nil }

// A pick costs one allocation of at most 48 bytes, whatever guards there are.
func TestPickAllocatesOnce(t *testing.T) {
	all := state.Guards{
		FailurePenalty: time.Second, MaxQueued: 10, Wake: make(chan struct{}, 1),
		SlowStart: state.SlowStart{Window: time.Minute, MinWeightPercent: 10, Aggression: 1},
	}
	for name, guards := range map[string]struct {
		state.Guards
		limit uint32
	}{"no guards": {}, "all guards": {all, 1000}} {
		t.Run(name, func(t *testing.T) {
			v, _ := readySetWith(t, guards.Guards, guards.limit, &still{}, &still{}, &still{})
			p := picker.New(v)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			pick := func() {
				res, _ := p.Pick(balancer.PickInfo{Ctx: ctx})
				res.Done(balancer.DoneInfo{BytesSent: true, BytesReceived: true})
			}
			require.EqualValues(t, 1, testing.AllocsPerRun(1000, pick))

			const runs = 20000
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range runs {
				pick()
			}
			runtime.ReadMemStats(&after)
			require.Less(t, float64(after.TotalAlloc-before.TotalAlloc)/runs, 49.0, "one byte is for what else the process does")
		})
	}
}

// finished returns the Done of an RPC that is over, and its ledger.
func finished(t *testing.T, c balancer.Picker) (func(balancer.DoneInfo), weak.Pointer[state.Ledger]) {
	l := state.Open("")
	r := l.NewEndpointSet("test")
	v := r.NewReadySet(0)
	v.Set(r.Update(nil, []state.Identity{{Addrs: []string{"a"}}})[0], 1, c)
	res, err := picker.New(v).Pick(balancer.PickInfo{})
	require.NoError(t, err)
	res.Done(balancer.DoneInfo{})
	r.Close()
	return res.Done, weak.Make(l)
}

// An application may keep a finished stream, and with it the Done: that does
// not pin the ledger.
func TestFinishedDonePinsNoLedger(t *testing.T) {
	for _, c := range []balancer.Picker{&still{}, &still{balancer.PickResult{Done: func(balancer.DoneInfo) {}}}} {
		kept, ledger := finished(t, c)
		require.True(t, collected(func() bool { return ledger.Value() == nil }))
		kept(balancer.DoneInfo{})
	}
}

// finishedChild returns the Done of an RPC that is over, and what the child's
// Done had held.
func finishedChild(t *testing.T) (func(balancer.DoneInfo), weak.Pointer[[1 << 16]byte]) {
	held := new([1 << 16]byte)
	kept, _ := finished(t, &still{balancer.PickResult{Done: func(balancer.DoneInfo) { held[0]++ }}})
	return kept, weak.Make(held)
}

func TestFinishedDonePinsNoChild(t *testing.T) {
	kept, held := finishedChild(t)
	require.True(t, collected(func() bool { return held.Value() == nil }))
	kept(balancer.DoneInfo{})
}

// A live one holds the ledger, through which a new channel sees it.
func TestLiveDoneHoldsTheLedger(t *testing.T) {
	done := func() func(balancer.DoneInfo) {
		r := state.Open(t.Name()).NewEndpointSet("test")
		defer r.Close()
		v := r.NewReadySet(0)
		v.Set(r.Update(nil, []state.Identity{{Addrs: []string{"a"}}})[0], 1, &still{})
		res, err := picker.New(v).Pick(balancer.PickInfo{})
		require.NoError(t, err)
		return res.Done
	}()
	for range 5 {
		runtime.GC()
	}
	require.EqualValues(t, 1, state.Open(t.Name()).Snapshot().InFlight)
	done(balancer.DoneInfo{})
	require.Zero(t, state.Open(t.Name()).Snapshot().InFlight)
}

// collected runs the collector until the condition holds, and reports whether
// it did in time.
func collected(done func() bool) bool {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		runtime.GC()
		if done() {
			return true
		}
	}
	return false
}
