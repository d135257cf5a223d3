package state

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A connection that moves to another ledger keeps what RPCs take of its room, and
// whoever closes it waits for them, however often it has moved.
func TestConnectionMovesToAnotherLedger(t *testing.T) {
	var ledgers []*Ledger
	var readySets []*ReadySet
	var members []*Member
	for range 3 {
		v := Open("").NewEndpointSet("").NewReadySet(0)
		m := v.set.Update(nil, []Identity{{Addrs: []string{"a"}}})[0]
		ledgers, readySets, members = append(ledgers, v.ledger), append(readySets, v), append(members, m)
	}
	acquireAll := func(v *ReadySet) (leases []Lease) {
		for {
			lease, _, ok := v.Acquire()
			if !ok {
				return leases
			}
			leases = append(leases, lease)
		}
	}
	check := func() {
		for _, l := range ledgers {
			require.NoError(t, l.Check())
		}
	}
	c := members[0].NewConnection()
	c.SetLimit(4)
	readySets[0].Set(members[0], 1, nil)
	first := acquireAll(readySets[0])
	require.Len(t, first, 4)
	first[0].Release()
	var second []Lease
	for i := 1; i < 3; i++ {
		readySets[i-1].Remove(members[i-1])
		c = c.MoveTo(members[i])
		readySets[i].Set(members[i], 1, nil)
		check()
		second = append(second, acquireAll(readySets[i])...)
		require.Len(t, second, i, "what is in flight takes room")
		first[i].Release()
		check()
	}
	second = append(second, acquireAll(readySets[2])...)
	require.Len(t, second, 3)

	idle := make(chan struct{}, 2)
	require.False(t, c.Close(func() { idle <- struct{}{} }))
	require.Zero(t, readySets[2].order.Len())
	for _, lease := range append(second, first[3]) {
		require.Empty(t, idle)
		lease.Release()
		check()
	}
	<-idle
}

// The last of RPCs that wait for a connection at its limit is given room like the first,
// although streams end while they come.
func TestRoomOnAConnectionIsGivenToAll(t *testing.T) {
	v := Open("").NewEndpointSet("").NewReadySet(0)
	wake := make(chan struct{}, 1)
	v.set.SetGuards(Guards{MaxQueued: 10, Wake: wake})
	m := v.set.Update(nil, []Identity{{Addrs: []string{"a"}}})[0]
	c := m.NewConnection()
	c.SetLimit(0)
	v.Set(m, 1, nil)
	v.set.SetQueueSets(v)
	_, _, outcome := v.set.AcquireOrQueue(t.Context(), nil, v)
	require.Equal(t, Queued, outcome)
	require.Empty(t, wake)
	c.SetLimit(1)
	require.Len(t, wake, 1)
	lease, _, outcome := v.set.AcquireOrQueue(t.Context(), nil, v)
	require.Equal(t, Chosen, outcome)
	is := v.ledger.Snapshot().Endpoints[0].Members[0].Connection
	is.AgeSeconds = 0
	require.Equal(t, ConnectionSnapshot{InFlight: 1, Limit: 1, Full: true, Number: 1}, is)

	m.NewConnection() // as after a GOAWAY: the stream lives on the old one
	other, _, ok := v.Acquire()
	require.True(t, ok)
	require.NoError(t, v.ledger.Check())
	require.EqualValues(t, 2, v.ledger.Snapshot().InFlight)
	lease.Release()
	other.Release()
	require.NoError(t, v.ledger.Check())
}
