package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// xdsSource brings a channel's lists by a control plane of its own.
type xdsSource struct {
	resolver.Builder
	plane *controlPlane

	mu      sync.Mutex
	state   resolver.State
	config  map[string]any  // of the policy
	serving map[string]bool // by address, of the servers whose health the control plane checks
}

// Update says by EDS, CDS and RDS what a resolver would. Where clients are to check the health of
// servers, which nobody can tell them, the control plane does it.
func (s *xdsSource) Update(state resolver.State, serviceConfig string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sc struct {
		LoadBalancingConfig []map[string]map[string]any
		MethodConfig        []struct{ Timeout string }
		HealthCheckConfig   *struct{ ServiceName string }
	}
	if err := json.Unmarshal([]byte(serviceConfig), &sc); err != nil {
		return err
	}
	s.state, s.config = state, sc.LoadBalancingConfig[0]["least_conn"]
	if s.config == nil {
		return fmt.Errorf("xDS cannot say this: %s", serviceConfig)
	}
	if key := lcresolver.ResourceKey(state); key != "" {
		s.config["resourceKey"] = key
	}
	p := s.plane
	p.timeout = nil
	if len(sc.MethodConfig) > 0 {
		timeout, err := time.ParseDuration(sc.MethodConfig[0].Timeout)
		if err != nil {
			return err
		}
		p.timeout = durationpb.New(timeout)
	}
	for _, e := range state.Endpoints {
		if lcresolver.ID(e) != "" || len(e.Addresses) != 1 {
			return errors.New("an EDS endpoint has no id and one address")
		}
		if addr := e.Addresses[0].Addr; sc.HealthCheckConfig != nil {
			if err := s.checkLocked(addr, sc.HealthCheckConfig.ServiceName); err != nil {
				return err
			}
		}
	}
	s.serveLocked()
	return leastconntest.WaitFor(p.Context(), "the client to hear of it", p.heard)
}

// serveLocked sends what the control plane knows. Caller holds mu.
func (s *xdsSource) serveLocked() {
	p := s.plane
	c := xdsCluster{name: p.service, policy: leastConnPolicy(p.T, s.config), regions: map[string][]*endpointpb.LbEndpoint{}}
	for _, e := range s.state.Endpoints {
		region := fmt.Sprint("priority-", lcresolver.Priority(e))
		c.regions[region] = append(c.regions[region], s.endpointLocked(e))
	}
	c.priorities = slices.Sorted(maps.Keys(c.regions))
	p.serve(c)
}

// endpointLocked says what a resolver says of one. Weight 0 is DRAINING, and what attributes have goes
// into metadata. Caller holds mu.
func (s *xdsSource) endpointLocked(e resolver.Endpoint) *endpointpb.LbEndpoint {
	addr, weight := e.Addresses[0].Addr, lcresolver.Weight(e)
	health := corepb.HealthStatus_HEALTHY
	if weight == 0 {
		health = corepb.HealthStatus_DRAINING
	}
	if serving, checked := s.serving[addr]; checked && !serving {
		health = corepb.HealthStatus_UNHEALTHY
	}
	said := xdsEndpoint(s.plane.T, addr, health)
	said.LoadBalancingWeight = wrapperspb.UInt32(max(1, weight))
	//lint:ignore SA1019 a row sets it
	text := e.Attributes.String() + e.Addresses[0].BalancerAttributes.String()
	said.Metadata = &corepb.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"test": {Fields: map[string]*structpb.Value{"attributes": structpb.NewStringValue(text)}},
	}}
	return said
}

// checkLocked begins to watch a server's health, for as long as it runs. Caller holds mu.
func (s *xdsSource) checkLocked(addr, service string) error {
	if _, checked := s.serving[addr]; checked {
		return nil
	}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	watch, err := healthpb.NewHealthClient(conn).Watch(s.plane.Context(), &healthpb.HealthCheckRequest{Service: service})
	var first *healthpb.HealthCheckResponse
	if err == nil {
		first, err = watch.Recv()
	}
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	s.serving[addr] = first.Status == healthpb.HealthCheckResponse_SERVING
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer conn.Close()
		for {
			now, err := watch.Recv()
			if err != nil {
				return // the server has stopped, or the test ends
			}
			s.mu.Lock()
			s.serving[addr] = now.Status == healthpb.HealthCheckResponse_SERVING
			s.serveLocked()
			s.mu.Unlock()
		}
	}()
	s.plane.Cleanup(func() { <-ended }) // the test's context has ended then
	return nil
}
