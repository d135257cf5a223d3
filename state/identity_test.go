package state_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// identities are what becomes of loads when lists change, in the notation of
// listings. What is listed in one line has no order.
var identities = []struct {
	name  string
	lines []string
}{
	{"AddressGained", []string{"x lists a", "x opens a 4", "x lists a+b", "x has a+b 4", "x lists b", "x has b 4", "endpoints 1"}},
	{"AddressLost", []string{"x lists a+b", "x opens a+b 4", "x lists b", "x has b 4", "endpoints 1"}},
	{"AddressExchanged", []string{"x lists a+b", "x opens a+b 4", "x lists b+c", "x has b+c 4", "x lists c+d", "x has c+d 4", "endpoints 1"}},
	{"AddressesDisjoint", []string{"x lists a", "x opens a 4", "x lists b", "x has b 0", "endpoints 2"}},
	{"AddressLostIsFree", []string{"x lists a+b", "x opens a+b 3", "x lists a", "x lists a b", "x has a 3", "x has b 0", "endpoints 2"}},
	{"AddressLostIsFreeForOthers", []string{"x lists a+b", "x opens a+b 3", "x lists a", "y lists b", "y has b 0"}},
	{"AddressKeptWhileOthersList", []string{"x lists a+b", "y lists a+b", "x opens a+b 3", "x lists a", "z lists b", "z has b 3", "endpoints 1"}},
	{"AddressLostWithItsLastEndpointSet", []string{"x lists a", "y lists a+b", "x opens a 2", "y closes", "z lists b", "z has b 0", "x has a 2"}},

	{"IDWithoutSharedAddress", []string{"x lists u@a", "x opens u@a 3", "x lists u@b", "x has u@b 3", "endpoints 1"}},
	{"IDWithoutSharedAddressElsewhere", []string{"x lists u@a", "x opens u@a 3", "y lists u@b", "y has u@b 3", "endpoints 1"}},
	{"IDLeavesItsAddress", []string{"x lists u@a", "x opens u@a 3", "x lists u@b a", "x has u@b 3", "x has a 0"}},
	{"OtherIDOnSameAddress", []string{"x lists u@a", "x opens u@a 3", "x lists v@a", "x has v@a 0", "endpoints 2", "x lists v@a u@c", "x has u@c 3"}},
	{"OtherIDOnSameAddressElsewhere", []string{"x lists u@a", "x opens u@a 3", "y lists v@a", "y has v@a 0", "x has u@a 3", "endpoints 2"}},
	{"IDComesFirst", []string{"x lists u@a b", "x opens u@a 1", "x opens b 5", "x lists u@b", "x has u@b 1", "endpoints 2"}},
	{"IDComesFirstWithinAnUpdate", []string{"x lists u@a", "x opens u@a 3", "x lists a u@b", "x has u@b 3", "x has a 0"}},
	{"IDExchanged", []string{"x lists u@a v@b", "x opens u@a 1", "x opens v@b 2", "x lists u@b v@a", "x has u@b 1", "x has v@a 2", "endpoints 2"}},
	{"IDGained", []string{"x lists a", "x opens a 4", "x lists u@a", "x has u@a 4", "x lists u@b", "x has u@b 4", "x lists v@b", "x has v@b 0"}},
	{"IDNoLongerTold", []string{"x lists u@a", "x opens u@a 4", "x lists a", "x has a 4", "endpoints 1"}},
	{"IDForgottenWithItsEntry", []string{"x lists u@a", "x lists b", "endpoints 1", "x lists u@c", "x has u@c 0", "endpoints 1"}},

	{"MostLoadedOfSeveral", []string{"x lists a b", "x opens a 2", "x opens b 5", "x lists a+b", "x has a+b 5", "endpoints 2", "x ends a 2", "x has a+b 5", "endpoints 1"}},
	{"MostLoadedOfSeveralFirstAddress", []string{"x lists a b", "x opens a 5", "x opens b 2", "x lists a+b", "x has a+b 5", "endpoints 2", "x ends b 2", "endpoints 1"}},
	{"MostLoadedOfSameAddresses", []string{"x lists u@a v@a", "x opens u@a 2", "x opens v@a 5", "y lists a", "y has a 5", "endpoints 2"}},
	{"SplitInTwo", []string{"x lists a+b", "x opens a+b 4", "x lists a b", "x has a 4", "x has b 0", "endpoints 2"}},
	{"SplitInThree", []string{"x lists a+b+c", "x opens a+b+c 4", "x lists a b c", "x has a 4", "x has b 0", "x has c 0", "endpoints 3"}},
	{"LargerPartOfASplit", []string{"x lists a+b+c", "x opens a+b+c 4", "x lists a b+c", "x has b+c 4", "x has a 0", "endpoints 2"}},
	{"Recombined", []string{"x lists a+b c+d", "x opens a+b 4", "x opens c+d 2", "x lists a+c b+d", "x has a+c 4", "x has b+d 2", "endpoints 2"}},
	{"FullMatchOfTheLessLoaded", []string{"x lists a b", "x opens a 1", "x opens b 9", "y lists a+b", "y has a+b 9", "z lists a", "z has a 1", "x has a 1", "x has b 9"}},
	{"FullMatchOfTheLaterAddress", []string{"x lists b+c", "x opens b+c 4", "y lists a+b b+c", "y has a+b 0", "y has b+c 4"}},
	{"SharedByTwoOfAnUpdate", []string{"x lists a", "x opens a 4", "x lists a+b a+c", "x has a+b 4", "x has a+c 0", "endpoints 2"}},
	{"FullMatchOfTwoOfAnUpdate", []string{"x lists a", "x opens a 4", "y lists a w@a", "y has a 4", "y has w@a 0", "endpoints 2"}},
	{"FullMatchBeforeOneWithMore", []string{"x lists b", "x opens b 4", "y lists a+b b", "y has a+b 0", "y has b 4", "endpoints 2"}},
	{"FullMatchInAnyOrder", []string{"x lists b+a", "x opens b+a 4", "y lists a+b", "y has a+b 4", "endpoints 1"}},

	{"UnchangedKeepsItsEntry", []string{"x lists a", "x opens a 4", "y lists a+b", "y has a+b 4", "y lists b", "y has b 4", "x lists a b", "x has a 4", "x has b 0", "y has b 4", "endpoints 2"}},
	{"UnchangedKeepsItsEntryFromNewcomers", []string{"x lists a+b", "x opens a+b 4", "x lists a+b b+c", "x has a+b 4", "x has b+c 0"}},
	{"UnchangedKeepsItsEntryWhenOthersJoinTwo", []string{"x lists a b", "x opens a 1", "x opens b 3", "y lists a+b", "y has a+b 3", "x has a 1", "x has b 3", "endpoints 2"}},

	{"LeaveAndReturn", []string{"x lists a b", "x opens a 4", "x lists b", "endpoints 2", "x lists a b", "x has a 4", "x has b 0", "endpoints 2"}},
	{"LeaveAndReturnOverAnotherAddress", []string{"x lists a+b", "x opens a+b 2", "x lists c", "x lists c b", "x has b 2"}},
	{"LeaveAndReturnElsewhere", []string{"x lists a", "x opens a 3", "x closes", "endpoints 1", "y lists a", "y has a 3"}},
	{"LeaveAndReturnWithSomeEnded", []string{"x lists a", "x opens a 3", "x lists b", "x ends a 2", "x lists a", "x has a 1"}},
	{"AddressUsedAgainAfterTheLeases", []string{"x lists a", "x opens a 2", "x lists b", "endpoints 2", "x ends a 2", "endpoints 1", "x lists a+b", "x has a+b 0", "endpoints 1"}},
	{"AddressUsedAgainIsNoOtherEntry", []string{"x lists a+b", "x opens a+b 2", "x lists c", "x ends a+b 2", "x lists a b c", "x has a 0", "x has b 0", "endpoints 3"}},
	{"EntryWithoutLeasesGoesAtOnce", []string{"x lists a b", "x lists a", "endpoints 1", "x lists c", "endpoints 1"}},
	{"EntryStaysForItsOtherEndpointSet", []string{"x lists a", "y lists a", "x closes", "endpoints 1", "y opens a 1", "y closes", "endpoints 1"}},
}

func TestIdentity(t *testing.T) {
	for _, tc := range identities {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(5) {
				newListings(t, seed).play(tc.lines...)
			}
		})
	}
}

// An endpoint that moves to another priority level keeps its load; its leases
// do not notice.
func TestIdentityAcrossReadySets(t *testing.T) {
	e := newEnv(t)
	e.add("a", "b")
	e.openMany(8)
	low := e.endpointSet.NewReadySet(1)
	low.Set(e.members["a"], 1, "a")
	require.Equal(t, "b", e.open(), "a is in the other ready set only")
	require.Equal(t, "a", e.keep(low))
	require.Equal(t, map[string]int{"a": 5, "b": 5}, e.loads())
	e.end("a", 5)
	e.set("a", 1)
	_, _, ok := low.Acquire()
	require.False(t, ok)
	require.Equal(t, map[string]int{"a": 5}, e.openMany(5))
}

// A list that moves to another ledger starts from nothing; old leases land in
// the old one.
func TestIdentityEndsWithTheLedger(t *testing.T) {
	old, next := newEnv(t), newEnv(t)
	old.add("a", "b")
	old.openMany(4)
	next.add("a", "b")
	old.endpointSet.Close()
	require.Equal(t, map[string]int{"a": 1, "b": 1}, next.openMany(2))
	require.Equal(t, map[string]int{"a": 2, "b": 2}, old.loads())
	old.end("a", 2)
	require.Equal(t, map[string]int{"b": 2}, old.loads())
	require.Equal(t, map[string]int{"a": 1, "b": 1}, next.loads())
}

// Endpoints that all have a gateway's address beside their own are told apart by
// their own, and a newcomer behind the gateway is none of them.
func TestGatewayAddressTellsNothing(t *testing.T) {
	for n, shares := range map[int]bool{2: true, 64: true, 65: false, 300: false} {
		l := state.Open("")
		r := l.NewEndpointSet("first")
		v := r.NewReadySet(0)
		eps := make([]state.Identity, n)
		for i := range eps {
			eps[i].Addrs = []string{fmt.Sprint("host", i), "gateway"}
		}
		for i, m := range r.Update(nil, eps) {
			v.Set(m, 1, i)
		}
		var leases []state.Lease
		for range n {
			lease, _, ok := v.Acquire()
			require.True(t, ok)
			leases = append(leases, lease)
		}
		require.NoError(t, l.Check())

		other := l.NewEndpointSet("second")
		other.Update(nil, eps)
		require.Len(t, l.Snapshot().Endpoints, n, "full matches")
		l.NewEndpointSet("third").Update(nil, []state.Identity{{Addrs: []string{"gateway", "new"}}})
		endpoints := l.Snapshot().Endpoints
		require.Equal(t, shares, len(endpoints) == n, "%d endpoints share the gateway, %d in the ledger", n, len(endpoints))
		require.NoError(t, l.Check())
		for _, lease := range leases {
			require.True(t, lease.Release())
		}
	}
}
