package state

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// A member that lists what others do costs nothing more for their number: neither when
// it joins, nor while it changes, nor when it leaves.
func TestEqualListsCostTheSameForAny(t *testing.T) {
	cost := func(channels int) float64 {
		c := newCrowd(t, channels, Guards{})
		defer c.done()
		c.inStepsOf(stepSize, nil)
		list := identities(1)
		addrs := &c.ms[0][0].endpoint.addrs[0]
		least := math.Inf(1)
		for range 20 { // others may allocate meanwhile, and each order draws the shape of its lists
			r := c.NewEndpointSet("one more")
			v := r.NewReadySet(0)
			least = min(least, testing.AllocsPerRun(100, func() {
				m := r.Update(nil, list)[0]
				v.Set(m, 1, nil)
				require.Same(t, addrs, &m.endpoint.addrs[0])
				r.Update([]*Member{m}, nil)
			}))
			r.Close()
		}
		return least
	}
	require.Equal(t, cost(2), cost(100))
}

// Whatever the members of an endpoint list, it has all of it, and nothing else.
func TestAddressesAreCounted(t *testing.T) {
	l := newLedger("")
	sets := []*EndpointSet{l.NewEndpointSet("x"), l.NewEndpointSet("y"), l.NewEndpointSet("z")}
	now := make([]*Member, len(sets))
	list := func(i int, addrs ...string) {
		var leave []*Member
		if now[i] != nil {
			leave = []*Member{now[i]}
		}
		var join []Identity
		if len(addrs) > 0 {
			join = []Identity{{ID: "u", Addrs: addrs}}
		}
		now[i] = nil
		for _, m := range sets[i].Update(leave, join) {
			now[i] = m
		}
	}
	for _, step := range []struct {
		set   int
		addrs []string
		want  []string
	}{
		{0, []string{"b", "a", "b"}, []string{"a", "b"}},
		{1, []string{"a"}, []string{"a", "b"}},
		{2, []string{"c"}, []string{"a", "b", "c"}},
		{0, []string{"d"}, []string{"a", "c", "d"}},
		{0, []string{"d", "a"}, []string{"a", "c", "d"}},
		{1, nil, []string{"a", "c", "d"}},
		{0, []string{"d"}, []string{"c", "d"}},
		{0, nil, []string{"c"}},
		{1, []string{"c", "e"}, []string{"c", "e"}},
		{2, nil, []string{"c", "e"}},
	} {
		list(step.set, step.addrs...)
		require.NoError(t, l.Check())
		require.Equal(t, step.want, l.Snapshot().Endpoints[0].Addresses)
	}
	m := now[1]
	lease := func() Lease {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.newLease(m.endpoint, sets[1], m.connection, nil)
	}()
	list(1)
	require.NoError(t, l.Check())
	require.Equal(t, []string{"c", "e"}, l.Snapshot().Endpoints[0].Addresses, "departed")
	list(0, "e", "f")
	require.NoError(t, l.Check())
	require.Equal(t, []string{"e", "f"}, l.Snapshot().Endpoints[0].Addresses)
	lease.Release()
	list(0)
	require.Empty(t, l.byAddr)
}
