package leastconnbalancer_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/reports"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

// patience is how long a test waits for what must come: only a fault reaches it.
const patience = time.Minute

// TestMain lets more parallel tests run than there are processors, unless it is
// told how many: most of them wait for the network most of the time.
func TestMain(m *testing.M) {
	reports.Register(listenInTest)
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "12")
	}
	statetest.Main(m)
}

// env runs real nodes and channels for one test, and ends them with it. Its
// channels have ledgers of their own.
type env struct {
	*testing.T
	ctx      context.Context
	channels []*channel
}

// newEnv is for tests that nothing else in the process may disturb.
func newEnv(t *testing.T) *env {
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	e := &env{T: t, ctx: ctx}
	t.Cleanup(func() {
		cancel()
		for _, c := range e.channels {
			e.wait("all leases of ended RPCs are back", func() bool { return c.snapshot().InFlight == 0 })
		}
	})
	return e
}

// parallelEnv is newEnv for a test that runs beside others.
func parallelEnv(t *testing.T) *env {
	t.Parallel()
	return newEnv(t)
}

// nodes starts a node for each name.
func (e *env) nodes(names ...string) []*leastconntest.Node {
	e.Helper()
	return e.nodesWith(leastconntest.Options{}, names...)
}

func (e *env) nodesWith(opts leastconntest.Options, names ...string) []*leastconntest.Node {
	e.Helper()
	ns, err := leastconntest.StartNodes(opts, names...)
	require.NoError(e, err)
	e.Cleanup(func() { leastconntest.CloseNodes(ns...) })
	return ns
}

// node starts a node with server options.
func (e *env) node(name string, opts ...grpc.ServerOption) *leastconntest.Node {
	e.Helper()
	return e.nodesWith(leastconntest.Options{ServerOptions: opts}, name)[0]
}

// proxied puts a proxy before the node.
func (e *env) proxied(n *leastconntest.Node) *leastconntest.Proxy {
	e.Helper()
	p, err := leastconntest.StartProxy(n.Addr())
	require.NoError(e, err)
	e.Cleanup(p.Close)
	return p
}

// dial opens a channel whose first list is the nodes, and waits until it can
// use all of them.
func (e *env) dial(nodes ...*leastconntest.Node) *channel {
	e.Helper()
	return e.dialWith(leastconntest.ChannelConfig{}, nodes...)
}

func (e *env) dialWith(cfg leastconntest.ChannelConfig, nodes ...*leastconntest.Node) *channel {
	e.Helper()
	if cfg.Endpoints == nil {
		cfg.Endpoints = leastconntest.Endpoints(nodes...)
	}
	c := e.unused(cfg)
	c.Connect()
	c.waitReady(nodes...)
	return c
}

// dialAs is dialWith for a channel whose load is in the ledger of the key.
func (e *env) dialAs(key string, cfg leastconntest.ChannelConfig, nodes ...*leastconntest.Node) *channel {
	e.Helper()
	if cfg.Endpoints == nil {
		cfg.Endpoints = leastconntest.Endpoints(nodes...)
	}
	c := e.dialWith(cfg)
	c.key = key
	c.waitReady(nodes...)
	return c
}

// unused makes a channel that does nothing yet.
func (e *env) unused(cfg leastconntest.ChannelConfig) *channel {
	e.Helper()
	conn, err := leastconntest.Dial(cfg)
	require.NoError(e, err)
	e.Cleanup(func() { conn.Close() })
	c := &channel{Channel: conn, env: e, key: conn.Conn().CanonicalTarget()}
	e.channels = append(e.channels, c)
	return c
}

// wait fails the test when the condition does not come true.
func (e *env) wait(what string, condition func() bool) {
	e.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(e, leastconntest.WaitFor(ctx, what, condition))
}

// within is a context that ends after d.
func (e *env) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(e.ctx, d)
	e.Cleanup(cancel)
	return ctx
}

// served checks what the nodes handle now, in their order.
func (e *env) served(nodes []*leastconntest.Node, want ...int) {
	e.Helper()
	for i, n := range nodes {
		require.NoError(e, n.WaitLive(e.ctx, want[i]), "RPCs at node %s", n.Name())
	}
}

// conns checks how many connections the nodes have accepted so far.
func (e *env) conns(nodes []*leastconntest.Node, want ...int) {
	e.Helper()
	got := make([]int, len(nodes))
	for i, n := range nodes {
		got[i] = n.Conns()
	}
	require.Equal(e, want, got, "connections by node")
}

// result is what came of an RPC.
type result struct {
	node string
	err  error
}

// async makes an RPC that the test goes on without.
func (e *env) async(rpc func() (node string, err error)) <-chan result {
	done := make(chan result, 1)
	go func() {
		node, err := rpc()
		done <- result{node, err}
	}()
	return done
}

// atMostGoroutines waits until no more than so many are left.
func (e *env) atMostGoroutines(n int) {
	e.Helper()
	e.wait(fmt.Sprintf("at most %d goroutines are left", n), func() bool { return runtime.NumGoroutine() <= n })
}

// ledgerOf returns the ledger of a resource key, nil when there is none.
func ledgerOf(key string) *state.Ledger {
	for _, l := range state.Ledgers() {
		if l.Key() == key {
			return l
		}
	}
	return nil
}
