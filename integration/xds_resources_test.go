package integration

import (
	"net"
	"slices"
	"strconv"
	"testing"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	aggregatepb "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	routerpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	managerpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	wrrpb "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	xdstypepb "github.com/cncf/xds/go/xds/type/v3"
)

// xdsCluster is a cluster with its endpoints by region.
type xdsCluster struct {
	name       string
	policy     *clusterpb.LoadBalancingPolicy
	regions    map[string][]*endpointpb.LbEndpoint
	priorities []string // regions, the preferred one first; none: they are equal
	aggregates []string // the clusters that it consists of, in place of endpoints
	also       func(*clusterpb.Cluster, *endpointpb.ClusterLoadAssignment)
}

var overADS = &corepb.ConfigSource{
	ResourceApiVersion:    corepb.ApiVersion_V3,
	ConfigSourceSpecifier: &corepb.ConfigSource_Ads{Ads: &corepb.AggregatedConfigSource{}},
}

// resources are the cluster and, unless it is an aggregate, its endpoints.
func (c xdsCluster) resources(t *testing.T) (*clusterpb.Cluster, *endpointpb.ClusterLoadAssignment) {
	t.Helper()
	cluster := &clusterpb.Cluster{Name: c.name, LoadBalancingPolicy: c.policy, CircuitBreakers: maxRequests(1 << 20)}
	if c.aggregates != nil {
		cluster.ClusterDiscoveryType = &clusterpb.Cluster_ClusterType{ClusterType: &clusterpb.Cluster_CustomClusterType{
			Name: "envoy.clusters.aggregate", TypedConfig: toAny(t, &aggregatepb.ClusterConfig{Clusters: c.aggregates}),
		}}
		return cluster, nil
	}
	cluster.ClusterDiscoveryType = &clusterpb.Cluster_Type{Type: clusterpb.Cluster_EDS}
	cluster.EdsClusterConfig = &clusterpb.Cluster_EdsClusterConfig{EdsConfig: overADS}
	assignment := &endpointpb.ClusterLoadAssignment{ClusterName: c.name}
	for region, endpoints := range c.regions {
		assignment.Endpoints = append(assignment.Endpoints, &endpointpb.LocalityLbEndpoints{
			Locality:            &corepb.Locality{Region: region},
			LoadBalancingWeight: wrapperspb.UInt32(1),
			LbEndpoints:         endpoints,
			Priority:            uint32(max(0, slices.Index(c.priorities, region))),
		})
	}
	if c.also != nil {
		c.also(cluster, assignment)
	}
	return cluster, assignment
}

// maxRequests is how many RPCs a cluster has in flight at most: 1,024 if it does not say.
func maxRequests(n uint32) *clusterpb.CircuitBreakers {
	return &clusterpb.CircuitBreakers{Thresholds: []*clusterpb.CircuitBreakers_Thresholds{{MaxRequests: wrapperspb.UInt32(n)}}}
}

// xdsEndpoints are servers of one health.
func xdsEndpoints(t *testing.T, health corepb.HealthStatus, servers ...server) (endpoints []*endpointpb.LbEndpoint) {
	t.Helper()
	for _, s := range servers {
		endpoints = append(endpoints, xdsEndpoint(t, s.Addr(), health))
	}
	return endpoints
}

// healthy are servers of a region.
func healthy[S server](t *testing.T, servers ...S) []*endpointpb.LbEndpoint {
	t.Helper()
	return xdsEndpoints(t, corepb.HealthStatus_HEALTHY, all(servers...)...)
}

func xdsEndpoint(t *testing.T, addr string, health corepb.HealthStatus) *endpointpb.LbEndpoint {
	t.Helper()
	host, text, err := net.SplitHostPort(addr)
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

// xdsListener has the service's route.
func xdsListener(t *testing.T, service string) *listenerpb.Listener {
	return &listenerpb.Listener{
		Name: service,
		ApiListener: &listenerpb.ApiListener{ApiListener: toAny(t, &managerpb.HttpConnectionManager{
			HttpFilters: []*managerpb.HttpFilter{{
				Name:       "router",
				ConfigType: &managerpb.HttpFilter_TypedConfig{TypedConfig: toAny(t, &routerpb.Router{})},
			}},
			RouteSpecifier: &managerpb.HttpConnectionManager_Rds{Rds: &managerpb.Rds{ConfigSource: overADS, RouteConfigName: service}},
		})},
	}
}

// xdsRoute spreads RPCs evenly over clusters. They may have a timeout.
func xdsRoute(name string, clusters []string, timeout *durationpb.Duration) *routepb.RouteConfiguration {
	weighted := &routepb.WeightedCluster{}
	for _, c := range clusters {
		weighted.Clusters = append(weighted.Clusters, &routepb.WeightedCluster_ClusterWeight{Name: c, Weight: wrapperspb.UInt32(1)})
	}
	return &routepb.RouteConfiguration{
		Name: name,
		VirtualHosts: []*routepb.VirtualHost{{
			Domains: []string{"*"},
			Routes: []*routepb.Route{{
				Match: &routepb.RouteMatch{PathSpecifier: &routepb.RouteMatch_Prefix{Prefix: "/"}},
				Action: &routepb.Route_Route{Route: &routepb.RouteAction{
					ClusterSpecifier:  &routepb.RouteAction_WeightedClusters{WeightedClusters: weighted},
					MaxStreamDuration: &routepb.RouteAction_MaxStreamDuration{MaxStreamDuration: timeout},
				}},
			}},
		}},
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
