package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"

	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
	"github.com/leastconn/grpc-leastconn/state"
)

// A proxy in front of many nodes is one endpoint: it gets the share of one,
// however often the list has its address, and spreads it as it likes. A weight
// gives it more.
func TestGatewayIsOneEndpoint(t *testing.T) {
	eachProxy(t, func(t *testing.T, k proxyKind) {
		ns := startNodes(t, "near", "pod1", "pod2", "pod3")
		p := startProxy(t, k, settings{}, ns[1], ns[2], ns[3])
		m := dialMix(t, ns[0], p)
		m.list(p, ns[0], p, p)
		require.Len(t, m.snapshot().Endpoints, 2)
		first := m.hold(6, map[string]int{"near": 3, "pod1": 1, "pod2": 1, "pod3": 1})
		m.counts(3, 3)
		begun, _ := m.conns.of(p)
		require.Equal(t, 1, begun, "connections to the gateway")

		eps := endpointsOf(m.servers)
		require.NoError(t, m.Update(eps[0], lcresolver.SetWeight(eps[1], 3)))
		second := m.hold(6, map[string]int{"pod1": 2, "pod2": 2, "pod3": 2})
		m.counts(3, 9)
		m.endAll(first, second)
		m.counts(0, 0)
	})
}

// A node that is listed itself and behind a gateway is two endpoints: nobody
// can tell that some of the gateway's streams are the node's.
func TestGatewayHidesItsNodes(t *testing.T) {
	eachProxy(t, func(t *testing.T, k proxyKind) {
		n := startNodes(t, "node")[0]
		m := dialMix(t, n, startProxy(t, k, settings{}, n))
		streams := m.hold(6, map[string]int{"node": 6})
		m.inFlight(3, 3)
		require.NoError(t, n.WaitLive(t.Context(), 6))
		m.endAll(streams)
		m.counts(0, 0)
	})
}

// Endpoints with ids of their own are told apart although all have a gateway's
// address: each is counted, over a connection of its own.
func TestGatewayWithIDs(t *testing.T) {
	eachProxy(t, func(t *testing.T, k proxyKind) {
		p := startProxy(t, k, settings{}, startNodes(t, "pod")[0])
		m := dialMix(t, p)
		var eps []resolver.Endpoint
		for _, id := range []string{"x", "y", "z"} {
			eps = append(eps, lcresolver.SetID(endpointsOf(m.servers)[0], id))
		}
		require.NoError(t, m.Update(eps...))
		wait(t, "all endpoints are ready", func() bool { return readyNodes(m.snapshot()) == 3 })
		m.connected(p, 3)

		streams := m.hold(6, map[string]int{"pod": 6})
		for _, n := range m.snapshot().Endpoints {
			require.Equal(t, []string{p.addr}, n.Addresses)
			require.EqualValues(t, 2, n.InFlight, n.ID)
		}
		m.endAll(streams)
		require.Zero(t, m.snapshot().InFlight)
	})
}

func readyNodes(s state.Snapshot) (n int) {
	for _, node := range s.Endpoints {
		if len(node.Members) == 1 && node.Members[0].Ready {
			n++
		}
	}
	return n
}
