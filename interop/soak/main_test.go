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

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

// screen is what a run has printed so far.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// A short day with two kinds of quiet points and all kinds of faults and RPCs.
func TestShortDay(t *testing.T) {
	var out, errs screen
	status := run(t.Context(), strings.Fields("-duration 5s -round 400ms -seed 1 -nodes 4 -v"), &out, &errs)
	text := out.String()
	require.Equal(t, exitHeld, status, text)
	assert.Empty(t, errs.String())
	assert.Contains(t, text, "go run ./interop/soak -seed 1 -nodes 4 -round 400ms -duration 5s")
	assert.Contains(t, text, "round 0, ", "-v shows faults")
	assert.Contains(t, text, "seed 1: all checks held")
	assert.NotContains(t, text, ", 0 of them full")
}

// The last faults and RPCs are not waited for, and all is closed in order.
func TestInterrupt(t *testing.T) {
	var out, errs screen
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
	var out, errs screen
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
