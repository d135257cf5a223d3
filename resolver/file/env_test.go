package file_test

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
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	_ "github.com/leastconn/grpc-leastconn/resolver/file"
	"github.com/leastconn/grpc-leastconn/state"
)

// env is a node file with real nodes and channels that follow it.
type env struct {
	*testing.T
	ctx  context.Context
	path string
}

func newEnv(t *testing.T) *env {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return &env{T: t, ctx: ctx, path: filepath.Join(t.TempDir(), "nodes.yaml")}
}

func (s *env) nodes(names ...string) []*leastconntest.Node {
	s.Helper()
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, names...)
	require.NoError(s, err)
	s.Cleanup(func() { leastconntest.CloseNodes(nodes...) })
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

// put replaces the file as a whole.
func (s *env) put(content string) {
	s.Helper()
	next := s.path + ".next"
	require.NoError(s, os.WriteFile(next, []byte(content), 0o600))
	require.NoError(s, os.Rename(next, s.path))
}

// channel is a channel to the nodes of an env by least_conn.
type channel struct {
	*grpc.ClientConn
	env    *env
	client grpc_testing.TestServiceClient
}

// dial makes a channel; options come after env's own.
func (s *env) dial(options ...grpc.DialOption) *channel {
	s.Helper()
	return s.dialTarget("nodes://"+s.path, options...)
}

func (s *env) dialTarget(target string, options ...grpc.DialOption) *channel {
	s.Helper()
	conn, err := grpc.NewClient(target, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(leastconnbalancer.Config{}.ServiceConfig()),
	}, options...)...)
	require.NoError(s, err)
	s.Cleanup(func() { conn.Close() })
	return &channel{ClientConn: conn, env: s, client: grpc_testing.NewTestServiceClient(conn)}
}

func (s *env) wait(what string, condition func() bool) {
	s.Helper()
	require.NoError(s, leastconntest.WaitFor(s.ctx, what, condition))
}

// call makes a unary RPC and returns who answered.
func (c *channel) call(options ...grpc.CallOption) (string, error) {
	ctx, cancel := context.WithTimeout(c.env.ctx, 10*time.Second)
	defer cancel()
	answer, err := c.client.UnaryCall(ctx, &grpc_testing.SimpleRequest{}, options...)
	return answer.GetUsername(), err
}

// answers returns who answers a unary RPC.
func (c *channel) answers() string {
	c.env.Helper()
	name, err := c.call()
	require.NoError(c.env, err)
	return name
}

// refuses waits until RPCs fail with a text.
func (c *channel) refuses(text string) {
	c.env.Helper()
	var err error
	c.env.wait("failure with "+text, func() bool {
		_, err = c.call()
		return err != nil && strings.Contains(err.Error(), text)
	})
}

// stream is an open RPC on a node.
type stream struct {
	call grpc_testing.TestService_FullDuplexCallClient
	node string
}

// openStreams opens n streams, one after another, and returns where they went, too.
func (c *channel) openStreams(n int) (streams []stream, by map[string]int) {
	c.env.Helper()
	by = map[string]int{}
	for range n {
		call, err := c.client.FullDuplexCall(c.env.ctx)
		require.NoError(c.env, err)
		_, err = call.Recv()
		require.NoError(c.env, err)
		header, err := call.Header()
		require.NoError(c.env, err)
		streams = append(streams, stream{call: call, node: header.Get(leastconntest.NodeHeader)[0]})
		by[streams[len(streams)-1].node]++
	}
	return streams, by
}

// checkStreams checks that the streams are where they were.
func (c *channel) checkStreams(streams []stream) {
	c.env.Helper()
	for _, s := range streams {
		require.NoError(c.env, s.call.Send(&grpc_testing.StreamingOutputCallRequest{}), s.node)
		_, err := s.call.Recv()
		require.NoError(c.env, err, s.node)
	}
}

// snapshot returns the ledger of a key.
func (s *env) snapshot(key string) state.Snapshot {
	s.Helper()
	for _, l := range state.Ledgers() {
		if l.Key() == key {
			require.NoError(s, l.Check())
			return l.Snapshot()
		}
	}
	return state.Snapshot{}
}

// waitForReady waits until all channels of the file use exactly these nodes: they are
// the ready members of its ledger.
func (s *env) waitForReady(nodes ...*leastconntest.Node) {
	s.Helper()
	want := []string{}
	for _, n := range nodes {
		want = append(want, n.Addr())
	}
	slices.Sort(want)
	var got []string
	s.wait("ready nodes", func() bool {
		got = []string{}
		for _, n := range s.snapshot("nodes://" + s.path).Endpoints {
			if len(n.Members) > 0 && !slices.ContainsFunc(n.Members, func(m state.MemberSnapshot) bool { return !m.Ready }) {
				got = append(got, n.Addresses[0])
			}
		}
		slices.Sort(got)
		return slices.Equal(want, got)
	})
}

// waitForWeight waits until the node has this weight and priority in the ledger.
func (s *env) waitForWeight(n *leastconntest.Node, weight, priority uint32) {
	s.Helper()
	s.wait("weight of "+n.Name(), func() bool {
		for _, v := range s.snapshot("nodes://" + s.path).Endpoints {
			if slices.Contains(v.Addresses, n.Addr()) && len(v.Members) == 1 {
				return v.Members[0].Weight == weight && v.Members[0].Priority == priority && v.Members[0].Ready
			}
		}
		return false
	})
}
