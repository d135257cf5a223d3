package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leastconn/grpc-leastconn/interop/scenarios/rows"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// notBelowXDS is the rows that no control plane can play, with why.
var notBelowXDS = map[string]string{
	"health flips": "a service config turns client-side health checks on, and below xDS nobody can send one",
	"NOT_SERVING":  "as above",
	"moves: failover": "gRPC's priority policy does not tell the policy below it, which has the sessions, that a preferred " +
		"priority is back; it closes it 15 minutes later",
}

// Each row of the table of scenarios gives below a control plane what it gives without: what exact
// least-connections gives.
func TestScenariosBelowXDS(t *testing.T) {
	t.Parallel()
	policy := rows.LeastConn(func(target string) (leastconntest.Source, error) {
		p := startControlPlane(t, target, nil)
		return &xdsSource{Builder: p.resolver(), plane: p}, nil
	})
	var table []rows.Row
	for _, r := range rows.All() {
		if notBelowXDS[r.Name] == "" {
			table = append(table, r)
		}
	}
	require.Len(t, table, len(rows.All())-len(notBelowXDS), "a row in notBelowXDS is none")
	cells := make([]rows.Cell, len(table))
	play := func(i int) { cells[i] = table[i].Play(t.Context(), policy) }
	var beside sync.WaitGroup
	for i, r := range table {
		if r.Waits {
			beside.Go(func() { play(i) })
		}
	}
	for i, r := range table {
		if !r.Waits {
			play(i)
		}
	}
	beside.Wait()
	for i, r := range table {
		t.Run(r.Name, func(t *testing.T) {
			require.NoError(t, cells[i].Err)
			assert.Empty(t, cells[i].Deviations)
			if !r.Bounded {
				assert.Equal(t, r.Exact, cells[i].Got)
			}
		})
	}
}

// xdsSource brings a channel's lists by a control plane of its own.
type xdsSource struct {
	resolver.Builder
	plane *controlPlane
}

// Update says by EDS, CDS and RDS what a resolver would.
func (s *xdsSource) Update(state resolver.State, serviceConfig string) error {
	var sc struct {
		LoadBalancingConfig []map[string]map[string]any
		MethodConfig        []struct{ Timeout string }
		HealthCheckConfig   any
	}
	if err := json.Unmarshal([]byte(serviceConfig), &sc); err != nil {
		return err
	}
	config := sc.LoadBalancingConfig[0]["least_conn"]
	if config == nil || sc.HealthCheckConfig != nil {
		return fmt.Errorf("xDS cannot say this: %s", serviceConfig)
	}
	if key := lcresolver.ResourceKey(state); key != "" {
		config["resourceKey"] = key
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
	c := xdsCluster{name: p.service, policy: leastConnPolicy(p.T, config), regions: map[string][]*endpointpb.LbEndpoint{}}
	for _, e := range state.Endpoints {
		if lcresolver.ID(e) != "" || len(e.Addresses) != 1 {
			return errors.New("an EDS endpoint has no id and one address")
		}
		region := fmt.Sprint("priority-", lcresolver.Priority(e))
		c.regions[region] = append(c.regions[region], s.endpoint(e))
	}
	c.priorities = slices.Sorted(maps.Keys(c.regions))
	p.serve(c)
	return leastconntest.WaitFor(p.Context(), "the client to hear of it", p.heard)
}

// endpoint says what a resolver says of one. Weight 0 is DRAINING, and what attributes have goes into
// metadata.
func (s *xdsSource) endpoint(e resolver.Endpoint) *endpointpb.LbEndpoint {
	weight := lcresolver.Weight(e)
	health := corepb.HealthStatus_HEALTHY
	if weight == 0 {
		health = corepb.HealthStatus_DRAINING
	}
	said := xdsEndpoint(s.plane.T, e.Addresses[0].Addr, health)
	said.LoadBalancingWeight = wrapperspb.UInt32(max(1, weight))
	//lint:ignore SA1019 a row sets it
	text := e.Attributes.String() + e.Addresses[0].BalancerAttributes.String()
	said.Metadata = &corepb.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"test": {Fields: map[string]*structpb.Value{"attributes": structpb.NewStringValue(text)}},
	}}
	return said
}
