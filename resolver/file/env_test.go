package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// env is a node file, with real nodes and channels that follow it.
type env struct {
	*testing.T
	ctx  context.Context
	path string
}

// newEnv has no file yet. It is to be in a directory of these names.
func newEnv(t *testing.T, dirs ...string) *env {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return &env{T: t, ctx: ctx, path: filepath.Join(t.TempDir(), filepath.Join(dirs...), "nodes.yaml")}
}

// put replaces the file as a whole.
func (e *env) put(content string) {
	e.Helper()
	next := e.path + ".next"
	require.NoError(e, os.WriteFile(next, []byte(content), 0o600))
	require.NoError(e, os.Rename(next, e.path))
}

// write writes the file in place.
func (e *env) write(content string) {
	e.Helper()
	require.NoError(e, os.WriteFile(e.path, []byte(content), 0o600))
}

func (e *env) wait(what string, condition func() bool) {
	e.Helper()
	require.NoError(e, leastconntest.WaitFor(e.ctx, what, condition))
}

func (e *env) nodes(names ...string) []*leastconntest.Node {
	e.Helper()
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, names...)
	require.NoError(e, err)
	e.Cleanup(func() { leastconntest.CloseNodes(nodes...) })
	return nodes
}

// fileOf is a file that lists the nodes.
func fileOf(nodes ...*leastconntest.Node) string {
	var b strings.Builder
	b.WriteString("nodes:")
	for _, n := range nodes {
		fmt.Fprintf(&b, "\n  - address: %q", n.Addr())
	}
	if len(nodes) == 0 {
		b.WriteString(" []")
	}
	return b.String() + "\n"
}

// channel is a channel to the nodes of an env by least_conn.
type channel struct {
	*grpc.ClientConn
	env *env
}

// dial makes a channel to the file's nodes.
func (e *env) dial(options ...grpc.DialOption) channel {
	e.Helper()
	return e.dialTarget("nodes://"+e.path, options...)
}

func (e *env) dialTarget(target string, options ...grpc.DialOption) channel {
	e.Helper()
	conn, err := grpc.NewClient(target, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(leastconnbalancer.Config{}.ServiceConfig()),
	}, options...)...)
	require.NoError(e, err)
	e.Cleanup(func() { conn.Close() })
	conn.Connect()
	return channel{conn, e}
}

// call makes a unary RPC and returns who answered.
func (c channel) call(options ...grpc.CallOption) (string, error) {
	answer, err := grpc_testing.NewTestServiceClient(c).UnaryCall(c.env.ctx, &grpc_testing.SimpleRequest{}, options...)
	return answer.GetUsername(), err
}

// waitForAnswer waits until RPCs are answered by a node.
func (c channel) waitForAnswer(by string) {
	c.env.Helper()
	c.env.wait("answer", func() bool { name, _ := c.call(); return name == by })
}

// check makes a health check and returns its error.
func (c channel) check() error {
	_, err := grpc_health_v1.NewHealthClient(c).Check(c.env.ctx, &grpc_health_v1.HealthCheckRequest{})
	return err
}

// openStreams opens n streams, one after another, and returns where they went, too.
func (c channel) openStreams(n int) (streams []*leastconntest.Stream, by map[string]int) {
	c.env.Helper()
	for range n {
		s, err := leastconntest.Open(c.env.ctx, c)
		require.NoError(c.env, err)
		streams = append(streams, s)
	}
	return streams, leastconntest.Counts(streams)
}

// requireAlive checks that the streams are where they were.
func requireAlive(t require.TestingT, streams []*leastconntest.Stream) {
	for _, s := range streams {
		require.NoError(t, s.Ping(), s.Node())
	}
}

// endpoints returns what the ledger of a key knows, in the order of addresses.
func (e *env) endpoints(key string) (endpoints []state.EndpointSnapshot) {
	e.Helper()
	for _, l := range state.Ledgers() {
		if l.Key() == key {
			require.NoError(e, l.Check())
			endpoints = l.Snapshot().Endpoints
		}
	}
	slices.SortFunc(endpoints, func(a, b state.EndpointSnapshot) int { return slices.Compare(a.Addresses, b.Addresses) })
	return endpoints
}

// waitForReady waits until the ledger of a key has exactly these nodes, each of
// them ready for so many channels.
func (e *env) waitForReady(key string, channels int, nodes ...*leastconntest.Node) {
	e.Helper()
	var want []string
	for _, n := range nodes {
		want = append(want, n.Addr())
	}
	slices.Sort(want)
	e.wait("ready nodes", func() bool {
		var got []string
		for _, ep := range e.endpoints(key) {
			unready := func(m state.MemberSnapshot) bool { return !m.Ready }
			if len(ep.Members) == channels && !slices.ContainsFunc(ep.Members, unready) {
				got = append(got, ep.Addresses[0])
			}
		}
		return slices.Equal(want, got)
	})
}

// ready waits until the one channel of the file uses exactly these nodes.
func (e *env) ready(nodes ...*leastconntest.Node) {
	e.Helper()
	e.waitForReady("nodes://"+e.path, 1, nodes...)
}
