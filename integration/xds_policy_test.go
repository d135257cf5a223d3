package integration

import (
	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	roundrobinpb "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// leastConnCluster is a cluster's load_balancing_policy.
func leastConnCluster(config leastconnbalancer.Config) (*clusterpb.LoadBalancingPolicy, error) {
	var leastConn clusterpb.LoadBalancingPolicy_Policy
	if err := protojson.Unmarshal([]byte(config.XDSPolicy()), &leastConn); err != nil {
		return nil, err
	}
	roundRobin, err := anypb.New(&roundrobinpb.RoundRobin{})
	if err != nil {
		return nil, err
	}
	return &clusterpb.LoadBalancingPolicy{Policies: []*clusterpb.LoadBalancingPolicy_Policy{
		&leastConn,
		{TypedExtensionConfig: &corepb.TypedExtensionConfig{Name: "round_robin", TypedConfig: roundRobin}},
	}}, nil
}
