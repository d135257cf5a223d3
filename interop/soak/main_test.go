package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/interop/internal/flags"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

// screen is what a run has printed so far.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *output) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *output) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// A short run with two kinds of quiet points and all kinds of faults and RPCs.
func TestShortRun(t *testing.T) {
	var out output
	s := newSoak(settings{rounds: 2 * fullEvery, round: 400 * time.Millisecond, seed: 1, nodes: 4, verbose: true}, &out)
	require.NoError(t, s.execute(t.Context()), out.String())
	assert.Contains(t, out.String(), "round 0, ", "-v shows faults")
	assert.Contains(t, s.summary(nil, false), "seed 1: all checks held")
	assert.Contains(t, s.report.render(), "6 quiet points, 2 of them full; ")
}

// The last faults and RPCs are not waited for, and all is closed in order.
func TestInterrupt(t *testing.T) {
	var out, errs output
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"-v", "-seed", "2"}, &out, &errs) }()
	require.NoError(t, leastconntest.WaitFor(t.Context(), "faults", func() bool { return strings.Count(out.String(), " begins") > 10 }))
	interrupt()
	require.Equal(t, exitHeld, <-ended, out.String())
	assert.Contains(t, out.String(), "interrupted after")
	assert.Contains(t, out.String(), "RPC ")
}

// What nobody has begun and is counted is found, and said with all that it takes to look into it.
func TestForeignCountIsFound(t *testing.T) {
	var out, errs output
	ended := make(chan int, 1)
	go func() { ended <- run(t.Context(), []string{"-seed", "3"}, &out, &errs) }()
	leastconntest.WaitFor(t.Context(), "the ledger", func() bool { return len(state.Ledgers()) > 1 })
	foreign := state.Open(sharedKey).NewEndpointSet("foreign")
	defer foreign.Close()
	view := foreign.NewReadySet(0)
	view.Set(foreign.Update(nil, []state.Identity{{Addrs: []string{"127.0.0.1:1"}}})[0], 1, nil)
	lease, _, ok := view.Acquire()
	require.True(t, ok)
	defer lease.Release()
	select {
	case status := <-ended:
		require.Equal(t, exitViolated, status)
	case <-time.After(leastconntest.DefaultTimeout):
		t.Fatal("nothing was found")
	}
	text := out.String()
	assert.Contains(t, text, "VIOLATED after ")
	assert.Contains(t, text, `node 127.0.0.1:1 of ledger "soak" has 1 in flight, at most `)
	assert.Contains(t, text, `{"addresses":["127.0.0.1:1"],"state":"ready","inFlight":1,`, "the ledgers")
	assert.Contains(t, text, "replay with: go run ./interop/soak -seed 3 ")
}

func TestFlags(t *testing.T) {
	set, err := parse(strings.Fields("-duration 10m -seed 18446744073709551615 -nodes 3 -round 1s -v"), nil)
	require.NoError(t, err)
	assert.Equal(t, settings{duration: 10 * time.Minute, seed: 1<<64 - 1, nodes: 3, round: time.Second, verbose: true}, set)
	assert.Equal(t, "go run ./interop/soak -seed 18446744073709551615 -nodes 3 -round 1s -duration 10m0s", set.command())

	one, err := parse(nil, nil)
	require.NoError(t, err)
	other, err := parse([]string{"-seed=0"}, nil)
	require.NoError(t, err)
	assert.NotZero(t, one.seed)
	assert.NotEqual(t, one.seed, other.seed, "each run draws its own")
	one.seed = 0
	assert.Equal(t, settings{duration: time.Minute, nodes: 6, round: 4 * time.Second}, one)
}

func TestWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-duration 0s":               `invalid value "0s" for flag -duration: want 1s to 24h0m0s`,
		"-round 10ms":                `invalid value "10ms" for flag -round: want 200ms to 1m0s`,
		"-nodes 1":                   `invalid value "1" for flag -nodes: want a whole number from 2 to 32`,
		"-nodes 33":                  `invalid value "33" for flag -nodes: want a whole number from 2 to 32`,
		"-seed -1":                   `invalid value "-1" for flag -seed: want 0 to 2^64-1`,
		"-seed 18446744073709551616": `invalid value "18446744073709551616" for flag -seed: want 0 to 2^64-1`,
		"-v now":                     `unexpected argument "now"`,
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, flags.ExitUsage, run(t.Context(), strings.Fields(args), &out, &errs))
		assert.Contains(t, errs.String(), "soak: "+want)
		assert.Empty(t, out.String())
	}
}
