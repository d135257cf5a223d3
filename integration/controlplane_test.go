package integration

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoverypb "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	xdsresource "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	xdsserver "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/durationpb"
)

const xdsNode = "the-client"

// controlPlane is an xDS server that serves clusters over ADS.
type controlPlane struct {
	*testing.T
	service string
	addr    string
	cache   cache.SnapshotCache
	policy  *clusterpb.LoadBalancingPolicy
	routed  []string             // the clusters that RPCs are spread over; none: all
	timeout *durationpb.Duration // of RPCs; nil: none
	version int

	mu    sync.Mutex
	acked map[string]string // version that the client has taken, by type of resource; nil without a client
}

// startControlPlane starts one for a service and the policy of its cluster, for as long as the
// test runs.
func startControlPlane(t *testing.T, service string, policy *clusterpb.LoadBalancingPolicy) *controlPlane {
	t.Helper()
	p := &controlPlane{T: t, service: service, cache: cache.NewSnapshotCache(false, cache.IDHash{}, nil), policy: policy}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	s := grpc.NewServer()
	discoverypb.RegisterAggregatedDiscoveryServiceServer(s, xdsserver.NewServer(ctx, p.cache, p.callbacks()))
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l) // it ends with the test
	}()
	t.Cleanup(func() {
		cancel()
		s.Stop()
		<-served
	})
	return p
}

// callbacks keep what the client has taken.
func (p *controlPlane) callbacks() xdsserver.Callbacks {
	set := func(change func()) {
		p.mu.Lock()
		defer p.mu.Unlock()
		change()
	}
	return xdsserver.CallbackFuncs{
		StreamOpenFunc: func(context.Context, int64, string) error {
			set(func() { p.acked = map[string]string{} })
			return nil
		},
		StreamClosedFunc: func(int64, *corepb.Node) { set(func() { p.acked = nil }) },
		StreamRequestFunc: func(_ int64, r *discoverypb.DiscoveryRequest) error {
			set(func() { p.acked[r.GetTypeUrl()] = r.GetVersionInfo() })
			return nil
		},
	}
}

// heard tells whether the client, if there is one, has taken what was served last.
func (p *controlPlane) heard() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.acked {
		if v != strconv.Itoa(p.version) {
			return false
		}
	}
	return true
}

// resolver returns what resolves xds targets by the control plane.
func (p *controlPlane) resolver() resolver.Builder {
	p.Helper()
	b, err := xds.NewXDSResolverWithConfigForTesting(fmt.Appendf(nil, `{
		"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
		"node": {"id": %q}
	}`, p.addr, xdsNode))
	require.NoError(p, err)
	return b
}

// dial opens a channel to the service, which will list none but the servers.
func (p *controlPlane) dial(servers []server, opts ...grpc.DialOption) *env {
	p.Helper()
	return dialTarget(p.T, "xds:///"+p.service, servers, append(opts, grpc.WithResolvers(p.resolver()))...)
}

// list has the cluster's endpoints be servers of one locality. Some of them are draining.
func (p *controlPlane) list(servers []server, draining ...server) {
	p.Helper()
	endpoints := append(xdsEndpoints(p.T, corepb.HealthStatus_HEALTHY, servers...), xdsEndpoints(p.T, corepb.HealthStatus_DRAINING, draining...)...)
	p.serve(xdsCluster{name: p.service, policy: p.policy, regions: map[string][]*endpointpb.LbEndpoint{"here": endpoints}})
}

// serve sends the clusters, and a route to them.
func (p *controlPlane) serve(clusters ...xdsCluster) {
	p.Helper()
	p.version++
	routed := p.routed
	if len(routed) == 0 {
		for _, c := range clusters {
			routed = append(routed, c.name)
		}
	}
	resources := map[xdsresource.Type][]types.Resource{
		xdsresource.ListenerType: {xdsListener(p.T, p.service)},
		xdsresource.RouteType:    {xdsRoute(p.service, routed, p.timeout)},
	}
	for _, c := range clusters {
		cluster, assignment := c.resources(p.T)
		resources[xdsresource.ClusterType] = append(resources[xdsresource.ClusterType], cluster)
		if assignment != nil {
			resources[xdsresource.EndpointType] = append(resources[xdsresource.EndpointType], assignment)
		}
	}
	snapshot, err := cache.NewSnapshot(strconv.Itoa(p.version), resources)
	require.NoError(p, err)
	require.NoError(p, p.cache.SetSnapshot(p.Context(), xdsNode, snapshot))
}
