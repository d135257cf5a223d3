package leastconntest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

const (
	// Scheme is the scheme of every Channel's target.
	Scheme = "leastconntest"
	// DefaultServiceConfig selects least_conn without any setting.
	DefaultServiceConfig = `{"loadBalancingConfig":[{"least_conn":{}}]}`
)

// channels numbers the targets that were not given a name.
var channels atomic.Int64

// ChannelConfig says how to dial a Channel.
type ChannelConfig struct {
	// ServiceConfig is the service config that applies while the resolver sends none. Default: DefaultServiceConfig.
	ServiceConfig string
	// Target is the endpoint part of the dial target. Channels with equal Targets have equal canonical targets.
	// Default: a name that no other channel of the process has.
	Target string
	// Endpoints is the resolver's first list. An empty list is one, too; with nil the resolver keeps silent until Update or
	// ReportError, and RPCs wait for it.
	Endpoints []resolver.Endpoint
	// DialOptions come after the channel's own, so they win over its plaintext credentials and its service config.
	DialOptions []grpc.DialOption
	// Source makes what brings the channel's lists. What it says of the service config is the source's to follow. Default:
	// none, the channel has a resolver of its own.
	Source Sources
}

// Channel is a grpc.ClientConn whose resolver says what it is told to. All methods may be called by several goroutines
// at once.
type Channel struct {
	conn     *grpc.ClientConn
	client   grpc_testing.TestServiceClient
	resolver *recordingResolver // nil with a source

	source        Source // nil: none
	serviceConfig string // while an update has none

	// mu makes an update and reading its error one step. It is held while the resolver calls into the channel.
	mu sync.Mutex
}

// Dial makes a channel. As with grpc.NewClient, nothing is resolved before the first RPC or Connect.
func Dial(cfg ChannelConfig) (*Channel, error) {
	if cfg.ServiceConfig == "" {
		cfg.ServiceConfig = DefaultServiceConfig
	}
	if cfg.Target == "" {
		cfg.Target = "channel-" + strconv.FormatInt(channels.Add(1), 10)
	}
	c := &Channel{serviceConfig: cfg.ServiceConfig}
	scheme, lists, err := c.listBy(cfg)
	if err != nil {
		return nil, fmt.Errorf("leastconntest: %w", err)
	}
	options := append([]grpc.DialOption{
		grpc.WithResolvers(lists),
		grpc.WithNoProxy(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(cfg.ServiceConfig),
	}, cfg.DialOptions...)
	if c.conn, err = grpc.NewClient(scheme+":///"+cfg.Target, options...); err != nil {
		return nil, fmt.Errorf("leastconntest: %w", err)
	}
	c.client = grpc_testing.NewTestServiceClient(c.conn)
	return c, nil
}

// Conn is the channel itself.
func (c *Channel) Conn() *grpc.ClientConn { return c.conn }

// Client is the test service over the channel, for RPCs that Open and Unary do not offer.
func (c *Channel) Client() grpc_testing.TestServiceClient { return c.client }

// Connect leaves idle mode. When it returns, the policy has seen the resolver's list and begins to connect.
func (c *Channel) Connect() { c.conn.Connect() }

// Update has the resolver list exactly these endpoints and returns what the policy says to that. On a channel that has
// not been used yet it replaces the first list, and the error is nil.
func (c *Channel) Update(endpoints ...resolver.Endpoint) error {
	return c.UpdateState(resolver.State{Endpoints: endpoints})
}

// UpdateNodes is Update for the endpoints of nodes.
func (c *Channel) UpdateNodes(nodes ...*Node) error { return c.Update(Endpoints(nodes...)...) }

// UpdateConfig is Update together with a service config from the resolver. It leaves idle mode, since only a resolver in
// use can parse one.
func (c *Channel) UpdateConfig(serviceConfig string, endpoints ...resolver.Endpoint) error {
	c.Connect()
	if c.source != nil {
		return c.updateSource(resolver.State{Endpoints: endpoints}, serviceConfig)
	}
	parsed := c.resolver.CC().ParseServiceConfig(serviceConfig)
	if parsed.Err != nil {
		return fmt.Errorf("leastconntest: %w", parsed.Err)
	}
	return c.UpdateState(resolver.State{Endpoints: endpoints, ServiceConfig: parsed})
}

// UpdateState has the resolver report state and returns what the channel says to that. Use State.Endpoints: it wins
// over Addresses.
func (c *Channel) UpdateState(state resolver.State) error {
	if c.source != nil {
		return c.updateSource(state, c.serviceConfig)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resolver.last.Store(nil)
	c.resolver.UpdateState(state)
	if err := c.resolver.last.Load(); err != nil {
		return *err
	}
	return nil
}

// ReportError has the resolver report that resolving failed. It leaves idle mode. A channel with a source has no resolver
// that could.
func (c *Channel) ReportError(err error) {
	c.Connect()
	if c.source == nil {
		c.resolver.CC().ReportError(err)
	}
}

// Open opens a bidirectional stream, waits until a node acknowledges it and returns it. The stream lives no longer than
// ctx.
func (c *Channel) Open(ctx context.Context, opts ...grpc.CallOption) (*Stream, error) {
	return newStream(ctx, c.client, opts...)
}

// OpenN opens n streams, one after another. With an error it returns those it could open before.
func (c *Channel) OpenN(ctx context.Context, n int, opts ...grpc.CallOption) ([]*Stream, error) {
	streams := make([]*Stream, 0, n)
	for range n {
		s, err := c.Open(ctx, opts...)
		if err != nil {
			return streams, fmt.Errorf("stream %d of %d: %w", len(streams)+1, n, err)
		}
		streams = append(streams, s)
	}
	return streams, nil
}

// OpenTogether opens n streams from n goroutines that all start at one moment. With an error it returns those that could
// be opened.
func (c *Channel) OpenTogether(ctx context.Context, n int, opts ...grpc.CallOption) ([]*Stream, error) {
	var (
		start   = make(chan struct{})
		opened  sync.WaitGroup
		mu      sync.Mutex
		streams = make([]*Stream, 0, n)
		errs    []error
	)
	for range n {
		opened.Go(func() {
			<-start
			s, err := c.Open(ctx, opts...)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			streams = append(streams, s)
		})
	}
	close(start)
	opened.Wait()
	return streams, errors.Join(errs...)
}

// Unary makes a unary RPC and returns the name of the node that answered.
func (c *Channel) Unary(ctx context.Context, opts ...grpc.CallOption) (node string, err error) {
	response, err := c.client.UnaryCall(ctx, &grpc_testing.SimpleRequest{}, opts...)
	return response.GetUsername(), err
}

// Close closes the channel; streams that are still open end with codes.Canceled.
func (c *Channel) Close() error { return c.conn.Close() }

// recordingResolver is a manual resolver that remembers what the channel said to its latest update.
type recordingResolver struct {
	*manual.Resolver
	last atomic.Pointer[error]
}

// Build puts itself between the manual resolver and the channel.
func (r *recordingResolver) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	return r.Resolver.Build(target, recordingConn{ClientConn: cc, last: &r.last}, opts)
}

// recordingConn embeds the channel's side of the resolver to intercept UpdateState.
type recordingConn struct {
	resolver.ClientConn
	last *atomic.Pointer[error]
}

// UpdateState keeps the error that the manual resolver drops.
func (c recordingConn) UpdateState(state resolver.State) error {
	err := c.ClientConn.UpdateState(state)
	if err != nil {
		c.last.Store(&err)
	}
	return err
}
