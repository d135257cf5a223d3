package state_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// replace makes the list n fresh addresses and nothing else.
func (s *site) replace(update, n int) {
	var leave []*state.Member
	for a, m := range s.members {
		leave = append(leave, m)
		delete(s.members, a)
	}
	eps := make([]state.Identity, n)
	for i := range eps {
		eps[i].Addrs = []string{fmt.Sprint(update, "/", i)}
	}
	for i, m := range s.roster.Update(leave, eps) {
		s.members[eps[i].Addrs[0]] = m
		s.set(eps[i].Addrs[0], 1)
	}
}

// Addresses that come and go leave nothing behind.
func TestD10AddressChurn(t *testing.T) {
	s := newSite(t)
	for update := range 1000 {
		s.replace(update, 10)
		s.round(10)
		require.Len(t, s.ledger.Snapshot().Endpoints, 10)
	}
	require.NoError(t, s.ledger.Check())
}

// Those with live leases stay exactly as long as these.
func TestD10AddressChurnWithLiveLeases(t *testing.T) {
	s := newSite(t)
	s.replace(0, 10)
	s.openMany(10)
	for update := range 100 {
		s.replace(1+update, 10)
		require.Len(t, s.ledger.Snapshot().Endpoints, 20)
	}
	left := 20
	for a := range s.leases {
		s.end(a, 1)
		left--
		require.Len(t, s.ledger.Snapshot().Endpoints, left)
	}
	require.Equal(t, 10, left)
}
