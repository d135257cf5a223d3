package leastconnbalancer_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// channel is a channel of an env, with the ledger that its load is in.
type channel struct {
	*leastconntest.Channel
	env *env
	key string // the resource key
}

// update lists exactly the nodes and waits until all of them can be used.
func (c *channel) update(nodes ...*leastconntest.Node) {
	c.env.Helper()
	require.NoError(c.env, c.UpdateNodes(nodes...))
	c.waitReady(nodes...)
}

// reconfigure has the resolver send another config with the list of nodes.
func (c *channel) reconfigure(cfg leastconnbalancer.Config, nodes ...*leastconntest.Node) {
	c.env.Helper()
	require.NoError(c.env, c.UpdateConfig(cfg.ServiceConfig(), leastconntest.Endpoints(nodes...)...))
}

// hold opens n streams, one after another, and returns where they went.
func (c *channel) hold(n int) (streams []*leastconntest.Stream, by map[string]int) {
	c.env.Helper()
	streams, err := c.OpenN(c.env.ctx, n)
	require.NoError(c.env, err)
	return streams, leastconntest.Counts(streams)
}

// load holds want[i] streams on nodes[i]; there must be none before.
func (c *channel) load(nodes []*leastconntest.Node, want ...int) []*leastconntest.Stream {
	c.env.Helper()
	left := map[string]int{}
	for i, n := range nodes {
		left[n.Name()] = want[i]
	}
	streams, _ := c.hold(len(nodes) * slices.Max(want))
	kept := streams[:0]
	for _, s := range streams {
		if left[s.Node()] == 0 {
			s.Cancel()
			continue
		}
		left[s.Node()]--
		kept = append(kept, s)
	}
	c.counts(nodes, want...)
	return kept
}

// calls makes n unary RPCs, one after another, and returns where they went.
func (c *channel) calls(n int) (nodes []string) {
	c.env.Helper()
	for range n {
		node, err := c.Unary(c.env.ctx)
		require.NoError(c.env, err)
		nodes = append(nodes, node)
	}
	return nodes
}

// unary makes a unary RPC and returns who answered.
func (c *channel) unary() string {
	c.env.Helper()
	return c.calls(1)[0]
}

// stop stops the node and waits until the channel has lost it.
func (c *channel) stop(n *leastconntest.Node) {
	c.env.Helper()
	n.Stop()
	c.env.wait(n.Name()+" is lost", func() bool { return !c.ready(n) })
}

func (c *channel) waitState(want connectivity.State) {
	c.env.Helper()
	c.env.wait("the channel is "+want.String(), func() bool { return c.Conn().GetState() == want })
}

// brief is how an RPC ends that may wait 50 ms for a picker that takes it.
func (c *channel) brief(opts ...grpc.CallOption) codes.Code {
	ctx, cancel := context.WithTimeout(c.env.ctx, 50*time.Millisecond)
	defer cancel()
	_, err := c.Unary(ctx, opts...)
	return codeOf(err)
}

// unavailable checks that RPCs fail now, and returns what they say.
func (c *channel) unavailable() error {
	c.env.Helper()
	_, err := c.Unary(c.env.ctx)
	require.Equal(c.env, codes.Unavailable, codeOf(err), "%v", err)
	return err
}

// waits waits until so many RPCs of the ledger wait for room.
func (c *channel) waits(n int) {
	c.env.Helper()
	c.env.wait(fmt.Sprintf("%d RPCs wait for room", n), func() bool { return c.snapshot().Waiting == int64(n) })
}

// queue lets n unary RPCs wait for room, each behind the one before.
func (c *channel) queue(n int) (rpcs []<-chan result) {
	c.env.Helper()
	before := int(c.snapshot().Waiting)
	for i := range n {
		rpcs = append(rpcs, c.env.async(func() (string, error) { return c.Unary(c.env.ctx) }))
		c.waits(before + i + 1)
	}
	return rpcs
}

// noRoom checks that RPCs fail now for want of room.
func (c *channel) noRoom(opts ...grpc.CallOption) {
	c.env.Helper()
	_, err := c.Unary(c.env.ctx, opts...)
	require.Equal(c.env, codes.ResourceExhausted, codeOf(err), "%v", err)
	require.Equal(c.env, "least_conn: all endpoints are full (maxInFlight), and no more RPCs may wait for room (onFull, maxQueued)",
		status.Convert(err).Message())
}

func codeOf(err error) codes.Code { return status.Code(err) }

// tally counts the nodes by name.
func tally(nodes []string) map[string]int {
	by := map[string]int{}
	for _, n := range nodes {
		by[n]++
	}
	return by
}

// names returns n names for nodes.
func names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "n" + strconv.Itoa(i)
	}
	return names
}

// started is how many attempts the nodes have seen since before.
func started(nodes []*leastconntest.Node, before ...int) []int {
	got := make([]int, len(nodes))
	for i, n := range nodes {
		got[i] = n.Started()
		if before != nil {
			got[i] -= before[i]
		}
	}
	return got
}

func failing(nodes ...*leastconntest.Node) {
	for _, n := range nodes {
		n.SetFail(codes.Unavailable)
	}
}

// guarded is how to dial with a config of the policy.
func guarded(cfg leastconnbalancer.Config) leastconntest.ChannelConfig {
	return leastconntest.ChannelConfig{ServiceConfig: cfg.ServiceConfig()}
}

// selecting is the service config with the policy's config.
func selecting(js string) string { return `{"loadBalancingConfig":[{"least_conn":` + js + `}]}` }

// withoutPenalty selects the policy without its penalty for fresh failures, for
// tests of where RPCs go besides.
const withoutPenalty = `{"loadBalancingConfig":[{"least_conn":{"failurePenalty":"0s"}}]}`

// roundRobin is the service config of another policy.
const roundRobin = `{"loadBalancingConfig":[{"round_robin":{}}]}`

// aliases lets "name@address" reach address, so that a node has any number of
// addresses.
func aliases() grpc.DialOption { return grpc.WithContextDialer(dialAlias) }

// under is the node as one endpoint with these aliases as addresses.
func under(n *leastconntest.Node, aliases ...string) resolver.Endpoint {
	var ep resolver.Endpoint
	for _, a := range aliases {
		ep.Addresses = append(ep.Addresses, resolver.Address{Addr: a + "@" + n.Addr()})
	}
	return ep
}
