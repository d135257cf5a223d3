package state_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// startEnv is an environment with RPCs that may wait for endpoints that connect.
type startEnv struct {
	*env
	rpcs   map[string]*startRPC
	chosen int // RPCs that were given an endpoint, ever
}

// startRPC is an RPC by its name.
type startRPC struct {
	ctx   context.Context
	end   context.CancelFunc
	tried *state.Tried
	lease state.Lease
	at    string
}

// starting runs a test in virtual time, in which some endpoints are ready and others
// connect, with weight 1 and 500 ms to do so.
func starting(t *testing.T, ready, connecting string, test func(*startEnv)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &startEnv{env: newEnv(t), rpcs: map[string]*startRPC{}}
		for _, name := range ready + connecting {
			e.list(string(name))
		}
		e.connecting(connecting, 500*time.Millisecond)
		for _, name := range ready {
			e.set(string(name), 1)
		}
		test(e)
		e.check()
		for name := range e.rpcs {
			e.over(name)
		}
		e.closes(e.members)
		require.False(t, e.endpointSet.Starting(), "nothing is left of it")
		require.Zero(t, e.ledger.Snapshot().InFlight)
	})
}

func (e *startEnv) connecting(names string, wait time.Duration) {
	for _, name := range names {
		e.readySet.SetConnecting(e.members[string(name)], 1, time.Now().Add(wait))
	}
}

// closes takes endpoints off the list.
func (e *startEnv) closes(members map[string]*state.Member) {
	for name := range members {
		e.remove(name)
	}
}

// ask lets RPCs ask for an endpoint, each named by a rune. It returns where they go; "."
// is an RPC that waits, "-" one that finds nobody.
func (e *startEnv) ask(names string) string {
	e.Helper()
	return e.askWithin(names, 0)
}

func (e *startEnv) askWithin(names string, deadline time.Duration) string {
	e.Helper()
	got := ""
	for _, name := range names {
		rpc := e.rpcs[string(name)]
		if rpc == nil {
			rpc = &startRPC{}
			rpc.ctx, rpc.end = context.WithCancel(e.Context())
			if deadline > 0 {
				rpc.ctx, rpc.end = context.WithTimeout(e.Context(), deadline)
			}
			e.rpcs[string(name)] = rpc
		}
		got += e.askFor(rpc)
	}
	return got
}

func (e *startEnv) askFor(rpc *startRPC) string {
	e.Helper()
	lease, value, outcome := e.endpointSet.AcquireOrQueue(rpc.ctx, rpc.tried, e.readySet)
	if outcome == state.Chosen {
		e.chosen++
	}
	e.check()
	switch outcome {
	case state.Chosen:
		rpc.lease, rpc.at = lease, value.(string)
		return rpc.at
	case state.Reserved:
		return "."
	}
	return "-"
}

// over ends the RPC.
func (e *startEnv) over(names string) {
	e.Helper()
	for _, name := range names {
		rpc := e.rpcs[string(name)]
		delete(e.rpcs, string(name))
		rpc.end()
		synctest.Wait()
		rpc.lease.Release()
		e.check()
	}
}

func (e *startEnv) check() {
	e.Helper()
	require.NoError(e, e.ledger.Check())
	require.EqualValues(e, e.chosen, e.endpointSet.Counters().Picks, "an RPC that waits has picked nobody")
}

// reserved returns what is in flight by endpoint, and the part of it that waits.
func (e *startEnv) reserved() string {
	e.Helper()
	got, all := "", int64(0)
	s := e.ledger.Snapshot()
	for _, n := range s.Endpoints {
		got += fmt.Sprintf(" %s%d", n.Addresses[0], n.InFlight)
		if n.Reserved > 0 {
			got += fmt.Sprintf("(%d)", n.Reserved)
		}
		all += n.Reserved
	}
	require.Equal(e, all, s.Reserved)
	require.Equal(e, all, s.EndpointSets[0].Reserved)
	require.Zero(e, s.Waiting, "none waits for room")
	return got[min(1, len(got)):]
}
