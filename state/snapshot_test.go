package state_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// eventful returns a snapshot in which something of everything has happened.
func eventful(t *testing.T) state.Snapshot {
	l := openNew(t.Name())
	moveAgain := moving(t, l)
	r := l.NewEndpointSet("dns:///api.example.com")
	t.Cleanup(r.Close)
	r.SetGuards(state.Guards{
		FailurePenalty: time.Minute,
		SlowStart:      state.SlowStart{Window: time.Minute, MinWeightPercent: 25, Aggression: 1},
		MaxQueued:      1,
	})
	r.SetConfig(json.RawMessage(`{"maxInFlight":2}`))
	r.SetWarnings([]string{"onFull has no effect"})
	v := r.NewReadySet(2)
	list := func(id string, addrs ...string) *state.Member {
		return r.Update(nil, []state.Identity{{ID: id, Addrs: addrs}})[0]
	}
	acquire := func() state.Lease {
		lease, _, ok := v.Acquire()
		require.True(t, ok)
		t.Cleanup(func() { lease.Release() })
		return lease
	}

	departed := list("", "10.0.0.9:50051")
	v.Set(departed, 1, nil)
	acquire()
	r.Update([]*state.Member{departed}, nil)
	v.Set(list("", "10.0.0.2:50051"), 0, nil) // drains
	broken := list("", "10.0.0.3:50051")      // has no connection
	connectivity := state.Connectivity{State: "TRANSIENT_FAILURE", Since: time.Now()}
	connectivity.Failed(errors.New("connection refused"))
	broken.SetConnectivity(connectivity)
	first := list("pod-1", "[2001:db8::1]:50051", "10.0.0.1:50051")
	v.Set(first, 4, nil)
	time.Sleep(time.Minute)
	failed := acquire()
	second := list("", "10.0.0.4:50051")
	v.Set(second, 8, nil)
	first.SetMaxInFlight(2)
	second.SetMaxInFlight(1)

	var tried state.Tried
	tried.Add(failed)
	require.True(t, failed.Fail())
	require.False(t, failed.Fail())
	elsewhere, _, outcome := r.AcquireOrQueue(t.Context(), &tried, v)
	require.Equal(t, state.Chosen, outcome)
	t.Cleanup(func() { elsewhere.Release() })
	acquire()
	r.SetQueueSets(v)
	for _, limit := range []uint32{3, 3} { // the first that waits is given room
		waiting, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		_, _, outcome = r.AcquireOrQueue(waiting, nil, v)
		require.Equal(t, state.Queued, outcome)
		first.SetMaxInFlight(limit)
	}

	other := l.NewEndpointSet("dns:///api.example.com:443") // without caps
	t.Cleanup(other.Close)
	other.NewReadySet(2).Set(other.Update(nil, []state.Identity{{ID: "pod-1", Addrs: []string{"10.0.0.1:50051", "[2001:db8::1]:50051"}}})[0], 4, nil)
	starting := l.NewEndpointSet("dns:///api.example.com:9443")
	t.Cleanup(starting.Close)
	starting.SetLabels("east", "blue")
	w := starting.NewReadySet(3)
	var connection *state.Connection
	for i, m := range starting.Update(nil, []state.Identity{{Addrs: []string{"10.0.0.2:50051"}}, {Addrs: []string{"10.0.0.5:50051"}}}) {
		if i == 0 {
			connection = m.NewConnection()
			w.Set(m, 1, nil)
		} else {
			w.SetConnecting(m, 1, time.Now().Add(time.Minute))
		}
	}
	for _, want := range []state.Outcome{state.Chosen, state.Reserved} {
		rpc, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		lease, _, outcome := starting.AcquireOrQueue(rpc, nil, w)
		require.Equal(t, want, outcome)
		t.Cleanup(func() { lease.Release() })
	}
	connection.SetLimit(2)
	connection.AddOthers(1)
	starting.SetReports(10 * time.Second)
	other.SetReports(time.Minute)
	first.Report(20, 6.5)
	time.Sleep(24 * time.Second)
	moveAgain()
	time.Sleep(7 * time.Second) // between two rises of the second one's weight
	l.Drain("10.0.0.3:50051")
	require.NoError(t, l.Check())
	s := l.Snapshot()
	require.Equal(t, l.Key(), s.ResourceKey)
	s.ResourceKey = "api"
	return s
}

// moving adds an endpoint set whose sessions have moved for each reason. It returns what
// lets one more be asked, 5 s later, that does not move.
func moving(t *testing.T, l *state.Ledger) (again func()) {
	e := newEnvOn(t, l)
	e.second = e.endpointSet.NewReadySet(1)
	e.endpointSet.SetQueueSets(e.readySet, e.second)
	s := e.streams()
	t.Cleanup(func() { s.stop(); s.wg.Wait() })
	e.endpointSet.SetRebalance(state.Rebalance{PerSecond: 1e-9}) // none for level loads
	const a, b = "10.0.1.1:50051", "10.0.1.2:50051"
	e.add(a)
	s.begin(1)
	moves := func(to string) {
		pass(6 * time.Second)
		require.Equal(t, 1, s.at(to))
	}
	e.add(b)
	e.set(a, 0)
	moves(b)
	e.set(a, 1)
	e.second.Set(e.members[b], 1, b)
	moves(a)
	e.set(b, 1)
	connection := e.members[a].NewConnection() // the stream has the one before
	connection.SetLimit(0)
	moves(b)
	connection.SetLimit(math.MaxUint32)
	e.readySet.Remove(e.members[b])
	moves(a)
	e.set(b, 1)
	e.remove(a)
	moves(b)
	s.deaf = true
	s.begin(3)
	e.add(a)
	e.endpointSet.SetRebalance(state.Rebalance{PerSecond: 1})
	for s.told() < 6 {
		pass(time.Second)
	}
	e.endpointSet.SetRebalance(state.Rebalance{})
	pass(time.Minute) // it is given up
	e.endpointSet.SetReports(2 * time.Minute)
	e.members[a].Report(9, 1)
	e.members[b].Report(5, 1)
	return func() { e.endpointSet.SetRebalance(state.Rebalance{PerSecond: 1}) }
}

// Tests and tools read snapshots by these names.
func TestSnapshotIsStable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := eventful(t)
		seen := map[string]bool{}
		collect(reflect.ValueOf(s), seen)
		for field, used := range seen {
			require.True(t, used, "%s is 0 in all of the snapshot", field)
		}
		js, err := json.MarshalIndent(s, "", "  ")
		require.NoError(t, err)
		golden, err := os.ReadFile("testdata/snapshot.json")
		require.NoError(t, err)
		require.Equal(t, string(golden), string(js)+"\n")
		var back state.Snapshot
		require.NoError(t, json.Unmarshal(js, &back))
		for i := range back.EndpointSets {
			var compact bytes.Buffer
			if config := &back.EndpointSets[i].Config; *config != nil {
				require.NoError(t, json.Compact(&compact, *config))
				*config = compact.Bytes()
			}
		}
		require.Equal(t, s, back)
	})
}

// Whoever writes into a snapshot changes no later one.
func TestSnapshotIsTheCallers(t *testing.T) {
	l := state.Open("")
	r := l.NewEndpointSet("")
	t.Cleanup(r.Close)
	r.SetConfig(json.RawMessage(`{"maxInFlight":2}`))
	r.SetWarnings([]string{"onFull has no effect"})
	r.Update(nil, []state.Identity{{Addrs: []string{"a", "b"}}})
	snapshot := func() (state.EndpointSetSnapshot, state.EndpointSnapshot) {
		s := l.Snapshot()
		return s.EndpointSets[0], s.Endpoints[0]
	}
	set, n := snapshot()
	set.Config[2], set.Warnings[0], n.Addresses[0], n.Members[0] = 'M', "", "", state.MemberSnapshot{}
	set, n = snapshot()
	require.JSONEq(t, `{"maxInFlight":2}`, string(set.Config))
	require.Equal(t, []string{"onFull has no effect"}, set.Warnings)
	require.Equal(t, []string{"a", "b"}, n.Addresses)
	require.NotEqual(t, state.MemberSnapshot{}, n.Members[0])
}

// collect notes each field of the structs in v, and whether it is used anywhere.
func collect(v reflect.Value, seen map[string]bool) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Name() + "." + v.Type().Field(i).Name
			seen[name] = seen[name] || !v.Field(i).IsZero()
			collect(v.Field(i), seen)
		}
	}
}
