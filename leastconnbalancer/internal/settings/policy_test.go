package settings_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/settings"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// ears hears of the transports of all SubConns of a channel.
type ears struct {
	installed atomic.Int64 // bundles

	mu         sync.Mutex
	transports []*transport
}

func (e *ears) Connected() settings.Transport {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.transports = append(e.transports, &transport{ears: e})
	return e.transports[len(e.transports)-1]
}

// heard returns the limits of each transport, in order.
func (e *ears) heard() [][]uint32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all [][]uint32
	for _, t := range e.transports {
		all = append(all, slices.Clone(t.limits))
	}
	return all
}

func (e *ears) waitFor(t *testing.T, limits ...[]uint32) {
	t.Helper()
	require.NoError(t, leastconntest.WaitFor(t.Context(), "the limits", func() bool { return len(e.heard()) == len(limits) && equal(e.heard(), limits) }),
		"%v", e.heard())
}

func equal(a, b [][]uint32) bool { return slices.EqualFunc(a, b, slices.Equal[[]uint32]) }

type transport struct {
	ears   *ears
	limits []uint32
}

func (t *transport) SetLimit(streams uint32) {
	t.ears.mu.Lock()
	defer t.ears.mu.Unlock()
	t.limits = append(t.limits, streams)
}

// policy is pick_first whose SubConns have listeners: the channel's ears, or none
// if it has no ears.
type policy struct{}

const policyName = "settings_test"

func init() { balancer.Register(policy{}) }

// channels are the ears of channels by target.
var channels sync.Map

func (policy) Name() string { return policyName }

func (policy) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	conn := &policyConn{ClientConn: cc, opts: opts}
	if e, ok := channels.Load(opts.Target.Endpoint()); ok {
		conn.ears = e.(*ears)
	}
	return balancer.Get(pickfirst.Name).Build(conn, opts)
}

type policyConn struct {
	balancer.ClientConn // embedded to intercept NewSubConn
	opts                balancer.BuildOptions
	ears                *ears
}

func (c *policyConn) NewSubConn(addrs []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	if c.ears != nil {
		//lint:ignore SA1019 there is no other way
		opts.CredsBundle = settings.Bundle(c.opts, c.ears)
		addrs = settings.Addresses(c.opts, addrs, c.ears)
		//lint:ignore SA1019 there is no other way
		if opts.CredsBundle != nil {
			c.ears.installed.Add(1)
		}
	}
	//lint:ignore SA1019 pick_first calls it
	return c.ClientConn.NewSubConn(addrs, opts)
}

// dial connects to an address with the policy. The channel has no ears if e is nil.
func dial(t testing.TB, e *ears, address resolver.Address, opts ...grpc.DialOption) *leastconntest.Channel {
	if e != nil {
		channels.Store(target(t), e)
	} else {
		channels.Delete(target(t))
	}
	c, err := leastconntest.Dial(leastconntest.ChannelConfig{
		ServiceConfig: `{"loadBalancingConfig":[{"` + policyName + `":{}}]}`,
		Target:        target(t),
		Endpoints:     []resolver.Endpoint{{Addresses: []resolver.Address{address}}},
		DialOptions:   append([]grpc.DialOption{grpc.WithAuthority("node.test")}, opts...),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// target is what the test's channels are named after.
func target(t testing.TB) string { return strings.ReplaceAll(t.Name(), "/", "-") }

// startNode returns a node and its address.
func startNode(t testing.TB, opts ...grpc.ServerOption) (*leastconntest.Node, resolver.Address) {
	n, err := leastconntest.StartNode(leastconntest.Options{ServerOptions: opts})
	require.NoError(t, err)
	t.Cleanup(func() { n.Close() })
	return n, resolver.Address{Addr: n.Addr()}
}

// waitState waits for a state of the channel.
func waitState(t testing.TB, c *leastconntest.Channel, want connectivity.State) {
	t.Helper()
	c.Connect()
	ctx, cancel := context.WithTimeout(t.Context(), leastconntest.DefaultTimeout)
	defer cancel()
	for s := c.Conn().GetState(); s != want; s = c.Conn().GetState() {
		require.True(t, c.Conn().WaitForStateChange(ctx, s), "no state %v", want)
	}
}
