package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// everyState opens a ledger with an endpoint in each state.
func everyState(t *testing.T) (end func()) {
	r := state.Open("every state, " + strings.Repeat("longname", 20)).NewEndpointSet("dns:///" + strings.Repeat("long", 30))
	r.SetGuards(state.Guards{FailurePenalty: time.Hour, MaxQueued: 1, SlowStart: state.SlowStart{Window: time.Hour, MinWeightPercent: 10, Aggression: 1}})
	v := r.NewReadySet(0)
	var eps []state.Identity
	for _, a := range []string{"full", "failed", "departs", "draining", "not-ready"} {
		eps = append(eps, state.Identity{ID: a, Addrs: []string{"[2001:db8:0:1:2:3:4:" + fmt.Sprint(len(eps)) + "]:50051"}})
	}
	ms := r.Update(nil, eps)
	var leases []state.Lease
	for _, m := range ms[:3] {
		v.Set(m, 1, nil)
		for i := range 3 {
			l, _, outcome := r.AcquireOrQueue(state.WithCost(t.Context(), int64(1+i)), nil, v)
			require.Equal(t, state.Chosen, outcome)
			leases = append(leases, l)
		}
		v.Remove(m)
	}
	v.Set(ms[0], 1, nil)
	v.Set(ms[1], 1, nil)
	require.True(t, leases[3].Fail(), "a penalty")
	v.Set(ms[3], 0, nil)
	n := r.Update(ms[2:3], []state.Identity{{ID: "starts-slowly", Addrs: []string{"192.0.2.1:1"}}})
	v.Set(n[0], 1, nil)
	for _, m := range []*state.Member{ms[0], ms[1], n[0]} {
		m.SetMaxInFlight(1)
	}
	l, _, _ := v.Acquire()
	leases = append(leases, l)
	ctx, cancel := context.WithCancel(t.Context())
	_, _, outcome := r.AcquireOrQueue(ctx, nil, v)
	require.Equal(t, state.Queued, outcome)
	ms[0].SetMaxInFlight(4) // which grants it room
	next, cancelNext := context.WithCancel(t.Context())
	_, _, outcome = r.AcquireOrQueue(next, nil, v)
	require.Equal(t, state.Queued, outcome)
	endReserved := oneReserved(t, r.Ledger())
	r.SetReports(time.Hour)
	ms[0].Report(20, 1)
	for range 2 { // which is less than it has
		ms[1].Report(0, 1)
	}
	return func() {
		cancel()
		cancelNext()
		endReserved()
		for _, l := range leases {
			l.Release()
		}
		r.Close()
	}
}

// oneReserved has an RPC wait for an endpoint that connects.
func oneReserved(t *testing.T, l *state.Ledger) (end func()) {
	r := l.NewEndpointSet("starts up")
	v := r.NewReadySet(0)
	ms := r.Update(nil, []state.Identity{{ID: "ready", Addrs: []string{"192.0.2.2:1"}}, {ID: "connects", Addrs: []string{"192.0.2.3:1"}}})
	v.Set(ms[0], 1, nil)
	v.SetConnecting(ms[1], 1, time.Now().Add(time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	first, _, outcome := r.AcquireOrQueue(ctx, nil, v)
	require.Equal(t, state.Chosen, outcome)
	_, _, outcome = r.AcquireOrQueue(ctx, nil, v)
	require.Equal(t, state.Reserved, outcome)
	return func() {
		cancel()
		first.Release()
		r.Close()
	}
}
