package integration

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// patience is how long to wait for what is to be: so long that only a fault lets
// it fail, on a machine that has no core to spare, either.
const patience = 4 * time.Minute

// wait waits for a condition.
func wait(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, leastconntest.WaitFor(ctx, what, condition))
}

// unary makes an RPC, which waits for no connection, and returns who answers.
func (e *env) unary() (by string, err error) {
	ctx, cancel := context.WithTimeout(e.Context(), patience)
	defer cancel()
	r, err := grpc_testing.NewTestServiceClient(e.conn).UnaryCall(ctx, &grpc_testing.SimpleRequest{})
	return r.GetUsername(), err
}

// hold opens n streams, one after another, which must go to the servers in want.
func (e *env) hold(n int, want map[string]int) (streams []*leastconntest.Stream) {
	e.Helper()
	for range n {
		s, err := leastconntest.Open(e.ctx, e.conn)
		require.NoError(e, err)
		streams = append(streams, s)
	}
	require.Equal(e, want, leastconntest.Counts(streams))
	return streams
}

// alive checks that none of the streams has ended.
func (e *env) alive(streams ...[]*leastconntest.Stream) {
	e.Helper()
	require.NoError(e, leastconntest.PingAll(slices.Concat(streams...)))
}

// endAll ends the streams, which must be alive.
func (e *env) endAll(streams ...[]*leastconntest.Stream) {
	e.Helper()
	e.alive(streams...)
	require.NoError(e, leastconntest.EndAll(slices.Concat(streams...)))
}

// lost reads streams to their end, which must be one of the codes.
func (e *env) lost(streams []*leastconntest.Stream, want ...codes.Code) {
	e.Helper()
	for _, s := range streams {
		err := s.Wait()
		require.Contains(e, want, status.Code(err), "a stream on %s: %v", s.Node(), err)
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

// startNodes starts a node for each name, for as long as the test runs.
func startNodes(t *testing.T, names ...string) []*leastconntest.Node {
	t.Helper()
	ns, err := leastconntest.StartNodes(leastconntest.Options{}, names...)
	require.NoError(t, err)
	t.Cleanup(func() { leastconntest.CloseNodes(ns...) })
	return ns
}

// reserveAddr returns an address of loopback that nobody else gets while the
// test runs: that of a node that is stopped.
func reserveAddr(t *testing.T) string {
	t.Helper()
	n := startNodes(t, "")[0]
	n.Stop()
	return n.Addr()
}
