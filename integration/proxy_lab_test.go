package integration

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// mix is a channel to nodes and to proxies.
type mix struct {
	*peerLab
	servers []server // all that were ever listed, in the order they came
}

// dialMix opens a channel and waits until it can use the servers.
func dialMix(t *testing.T, servers ...server) *mix {
	t.Helper()
	m := &mix{peerLab: dialPeers(t, servers...), servers: servers}
	var cancel context.CancelFunc
	m.ctx, cancel = context.WithTimeout(m.ctx, time.Minute) // streams that nobody ends
	t.Cleanup(cancel)
	return m
}

// list has the resolver list exactly the servers and waits until the channel can
// use them.
func (m *mix) list(servers ...server) {
	m.Helper()
	for _, s := range servers {
		if !slices.Contains(m.servers, s) {
			m.servers = append(m.servers, s)
		}
	}
	m.peerLab.list(servers...)
}

// counts checks that so many RPCs are in flight on the servers and no other,
// and waits until the nodes see as many.
func (m *mix) counts(want ...int) {
	m.Helper()
	m.inFlight(want...)
	m.agree(m.servers, want...)
}

// inFlight is counts as the ledger alone has it.
func (m *mix) inFlight(want ...int) {
	m.Helper()
	got := map[string][]int{} // by address
	for _, s := range m.servers {
		got[s.Addr()] = nil
	}
	for _, n := range m.snapshot().Endpoints {
		got[n.Addresses[0]] = append(got[n.Addresses[0]], int(n.InFlight))
	}
	require.Len(m, got, len(m.servers), "addresses in the ledger")
	for i, s := range m.servers {
		if want[i] == 0 && got[s.Addr()] == nil {
			continue // a node that nobody lists is forgotten with its last RPC
		}
		require.Equal(m, []int{want[i]}, got[s.Addr()], "in flight on %s", s.Name())
	}
}

func (m *mix) snapshot() state.Snapshot {
	m.Helper()
	for _, s := range state.Snapshots() {
		if s.ResourceKey == m.Conn().CanonicalTarget() {
			return s
		}
	}
	return state.Snapshot{}
}

// waitWorker waits until the channel has a connection to the proxy's worker of
// that process id. No server may have fewer RPCs in flight than the proxy.
func (m *mix) waitWorker(pid int) {
	m.Helper()
	wait(m.T, "an answer from worker "+strconv.Itoa(pid), func() bool {
		var header metadata.MD
		_, err := m.Client().UnaryCall(m.ctx, &grpc_testing.SimpleRequest{}, grpc.Header(&header))
		by := header.Get("worker")
		return err == nil && len(by) == 1 && by[0] == strconv.Itoa(pid)
	})
}

// connected waits until so many connections to the server are open.
func (m *mix) connected(s server, want int) {
	m.Helper()
	wait(m.T, strconv.Itoa(want)+" connections to "+s.Name(), func() bool {
		_, open := m.conns.of(s)
		return open == want
	})
}

// lost reads streams to their end, which must be one of the codes.
func (m *mix) lost(streams []*leastconntest.Stream, want ...codes.Code) {
	m.Helper()
	for _, s := range streams {
		err := s.Wait()
		require.Contains(m, want, status.Code(err), "a stream on %s: %v", s.Node(), err)
	}
}

// on returns those of the streams that the node serves, and the others.
func on(node string, streams []*leastconntest.Stream) (here, elsewhere []*leastconntest.Stream) {
	for _, s := range streams {
		if s.Node() == node {
			here = append(here, s)
		} else {
			elsewhere = append(elsewhere, s)
		}
	}
	return here, elsewhere
}

// endAll ends the streams, which must be alive.
func (m *mix) endAll(streams ...[]*leastconntest.Stream) {
	m.Helper()
	for _, some := range streams {
		m.alive(some)
		require.NoError(m, leastconntest.EndAll(some))
	}
}

func (m *mix) alive(streams []*leastconntest.Stream) {
	m.Helper()
	require.NoError(m, leastconntest.PingAll(streams))
}
