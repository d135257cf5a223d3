package integration

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	managerpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	wrrpb "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	discoverypb "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	xdsresource "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	xdsserver "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	xdstypepb "github.com/cncf/xds/go/xds/type/v3"
)

const xdsNode = "the-client"

// controlPlane is an xDS server that serves clusters over ADS.
type controlPlane struct {
	*testing.T
	service string
	addr    string
	cache   cache.SnapshotCache
	policy  *clusterpb.LoadBalancingPolicy
	version int
}

// startControlPlane starts one for a service and the policy of its cluster, for as long as the
// test runs.
func startControlPlane(t *testing.T, service string, policy *clusterpb.LoadBalancingPolicy) *controlPlane {
	t.Helper()
	p := &controlPlane{T: t, service: service, cache: cache.NewSnapshotCache(true, cache.IDHash{}, nil), policy: policy}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	s := grpc.NewServer()
	discoverypb.RegisterAggregatedDiscoveryServiceServer(s, xdsserver.NewServer(ctx, p.cache, nil))
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

// list has the cluster's endpoints be servers of one locality. Some of them are draining.
func (p *controlPlane) list(servers []server, draining ...server) {
	p.Helper()
	var endpoints []*endpointpb.LbEndpoint
	add := func(health corepb.HealthStatus, servers []server) {
		for _, s := range servers {
			endpoints = append(endpoints, xdsEndpoint(p.T, s, health))
		}
	}
	add(corepb.HealthStatus_HEALTHY, servers)
	add(corepb.HealthStatus_DRAINING, draining)
	p.serve(xdsCluster{p.service, p.policy, map[string][]*endpointpb.LbEndpoint{"here": endpoints}})
}

// xdsCluster is a cluster with its endpoints by region.
type xdsCluster struct {
	name    string
	policy  *clusterpb.LoadBalancingPolicy
	regions map[string][]*endpointpb.LbEndpoint
}

// serve sends the clusters, between which RPCs are spread evenly.
func (p *controlPlane) serve(clusters ...xdsCluster) {
	p.Helper()
	p.version++
	resources := map[xdsresource.Type][]types.Resource{xdsresource.ListenerType: {p.listener(clusters)}}
	add := func(is xdsresource.Type, r types.Resource) { resources[is] = append(resources[is], r) }
	for _, c := range clusters {
		add(xdsresource.ClusterType, &clusterpb.Cluster{
			Name:                 c.name,
			ClusterDiscoveryType: &clusterpb.Cluster_Type{Type: clusterpb.Cluster_EDS},
			EdsClusterConfig:     &clusterpb.Cluster_EdsClusterConfig{EdsConfig: overADS},
			LoadBalancingPolicy:  c.policy,
		})
		assignment := &endpointpb.ClusterLoadAssignment{ClusterName: c.name}
		for region, endpoints := range c.regions {
			assignment.Endpoints = append(assignment.Endpoints, &endpointpb.LocalityLbEndpoints{
				Locality:            &corepb.Locality{Region: region},
				LoadBalancingWeight: wrapperspb.UInt32(1),
				LbEndpoints:         endpoints,
			})
		}
		add(xdsresource.EndpointType, assignment)
	}
	snapshot, err := cache.NewSnapshot(strconv.Itoa(p.version), resources)
	require.NoError(p, err)
	require.NoError(p, p.cache.SetSnapshot(p.Context(), xdsNode, snapshot))
}

var overADS = &corepb.ConfigSource{
	ResourceApiVersion:    corepb.ApiVersion_V3,
	ConfigSourceSpecifier: &corepb.ConfigSource_Ads{Ads: &corepb.AggregatedConfigSource{}},
}

func xdsEndpoint(t *testing.T, s server, health corepb.HealthStatus) *endpointpb.LbEndpoint {
	host, text, err := net.SplitHostPort(s.Addr())
	require.NoError(t, err)
	port, err := strconv.ParseUint(text, 10, 16)
	require.NoError(t, err)
	return &endpointpb.LbEndpoint{
		HealthStatus: health,
		HostIdentifier: &endpointpb.LbEndpoint_Endpoint{Endpoint: &endpointpb.Endpoint{
			Address: &corepb.Address{Address: &corepb.Address_SocketAddress{SocketAddress: &corepb.SocketAddress{
				Address:       host,
				PortSpecifier: &corepb.SocketAddress_PortValue{PortValue: uint32(port)},
			}}},
		}},
	}
}

// listener sends RPCs to all of the clusters.
func (p *controlPlane) listener(clusters []xdsCluster) *listenerpb.Listener {
	weighted := &routepb.WeightedCluster{}
	for _, c := range clusters {
		weighted.Clusters = append(weighted.Clusters, &routepb.WeightedCluster_ClusterWeight{Name: c.name, Weight: wrapperspb.UInt32(1)})
	}
	return &listenerpb.Listener{
		Name: p.service,
		ApiListener: &listenerpb.ApiListener{ApiListener: toAny(p.T, &managerpb.HttpConnectionManager{
			HttpFilters: []*managerpb.HttpFilter{{
				Name:       "router",
				ConfigType: &managerpb.HttpFilter_TypedConfig{TypedConfig: toAny(p.T, &routerpb.Router{})},
			}},
			RouteSpecifier: &managerpb.HttpConnectionManager_RouteConfig{RouteConfig: &routepb.RouteConfiguration{
				VirtualHosts: []*routepb.VirtualHost{{
					Domains: []string{"*"},
					Routes: []*routepb.Route{{
						Match: &routepb.RouteMatch{PathSpecifier: &routepb.RouteMatch_Prefix{Prefix: "/"}},
						Action: &routepb.Route_Route{Route: &routepb.RouteAction{
							ClusterSpecifier: &routepb.RouteAction_WeightedClusters{WeightedClusters: weighted},
						}},
					}},
				}},
			}},
		})},
	}
}

// leastConnPolicy is the policy with a configuration, as a cluster names it.
func leastConnPolicy(t *testing.T, config map[string]any) *clusterpb.LoadBalancingPolicy {
	t.Helper()
	value, err := structpb.NewStruct(config)
	require.NoError(t, err)
	return xdsPolicy(t, &xdstypepb.TypedStruct{TypeUrl: "type.googleapis.com/least_conn", Value: value})
}

// byLocality is a policy below wrr_locality.
func byLocality(t *testing.T, policy *clusterpb.LoadBalancingPolicy) *clusterpb.LoadBalancingPolicy {
	t.Helper()
	return xdsPolicy(t, &wrrpb.WrrLocality{EndpointPickingPolicy: policy})
}

func xdsPolicy(t *testing.T, config proto.Message) *clusterpb.LoadBalancingPolicy {
	t.Helper()
	return &clusterpb.LoadBalancingPolicy{Policies: []*clusterpb.LoadBalancingPolicy_Policy{{
		TypedExtensionConfig: &corepb.TypedExtensionConfig{Name: "policy", TypedConfig: toAny(t, config)},
	}}}
}

func toAny(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	require.NoError(t, err)
	return a
}
