package state_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// fleet is what clients in closed loops see of some endpoints: each call takes a
// while, fails at once where its endpoint fails, and after a failure the client
// pauses a little.
type fleet struct {
	*env
	service, pause time.Duration

	mu    sync.Mutex
	fails func(addr string, call int) bool
	calls map[string]int // since last looked at
	done  bool
}

func (f *fleet) client() {
	for {
		lease, value, _ := f.readySet.Acquire()
		a := value.(string)
		f.mu.Lock()
		f.calls[a]++
		failed, done := f.fails(a, f.calls[a]), f.done
		f.mu.Unlock()
		switch {
		case done:
			lease.Release()
			return
		case failed:
			lease.Fail()
			time.Sleep(f.pause)
		default:
			time.Sleep(f.service)
			lease.Release()
		}
	}
}

// stop ends the clients: nothing is left of their calls, and in a while of
// their failures.
func (f *fleet) stop() {
	f.mu.Lock()
	f.done = true
	f.mu.Unlock()
	pass(2 * time.Second)
	require.Zero(f, f.ledger.Snapshot().InFlight)
	require.Empty(f, f.penalties())
}

// during lets time pass and returns the calls by endpoint.
func (f *fleet) during(d time.Duration) map[string]int {
	pass(d)
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.calls
	f.calls = map[string]int{}
	return got
}

// now changes which calls fail.
func (f *fleet) now(fails func(addr string, call int) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = fails
}

func nothing(string, int) bool      { return false }
func onlyA(addr string, _ int) bool { return addr == "a" }

// inFleet runs a test with 12 clients of the endpoints.
func inFleet(t *testing.T, g state.Guards, addrs []string, test func(f *fleet)) {
	t.Helper()
	inTime(t, func(e *env) {
		f := &fleet{env: e, service: 20 * time.Millisecond, pause: 2 * time.Millisecond, fails: nothing, calls: map[string]int{}}
		e.guard(g)
		e.add(addrs...)
		for range 12 {
			go f.client()
		}
		defer f.stop()
		test(f)
	})
}

// An endpoint that fails at once does not attract the traffic, and what is left of it
// for the others is what they could do alone.
func TestFailingEndpointAttractsNoTraffic(t *testing.T) {
	inFleet(t, state.Guards{}, []string{"a", "b", "c"}, func(f *fleet) {
		f.now(onlyA)
		f.during(time.Second)
		got := f.during(time.Second)
		require.Greater(t, got["a"], (got["b"]+got["c"])*3/2, "without a penalty: %v", got)
	})
	alone := 0
	inFleet(t, penalized, []string{"b", "c"}, func(f *fleet) {
		f.during(time.Second)
		got := f.during(time.Second)
		alone = got["b"] + got["c"]
	})
	inFleet(t, penalized, []string{"a", "b", "c"}, func(f *fleet) {
		f.now(onlyA)
		first := f.during(time.Second)
		got := f.during(time.Second)
		healthy := got["b"] + got["c"]
		require.LessOrEqual(t, got["a"]*100, (got["a"]+healthy)*5, "%v, at first %v", got, first)
		require.GreaterOrEqual(t, healthy*100, alone*95, "%v", got)
	})
}

// An endpoint that has recovered has its share again once its penalties are over, and
// is asked meanwhile.
func TestRecoveredEndpointIsBack(t *testing.T) {
	inFleet(t, penalized, []string{"a", "b", "c"}, func(f *fleet) {
		f.now(onlyA)
		f.during(5 * time.Second)
		f.now(nothing)
		require.Positive(t, f.during(time.Second)["a"])
		got := f.during(time.Second)
		require.InDelta(t, got["b"], got["a"], 2, "%v", got)
		require.InDelta(t, got["c"], got["a"], 2, "%v", got)
	})
}
