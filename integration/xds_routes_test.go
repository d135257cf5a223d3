package integration

import (
	"testing"

	xdstypepb "github.com/cncf/xds/go/xds/type/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// When the route goes from blue to green and back, new RPCs follow it. Streams on blue live on and
// count all the time, also when they end meanwhile, and blue is levelled with them once it is back.
// A node that both have counts as one, unless the clusters have keys of their own.
func TestRouteFromBlueToGreenAndBack(t *testing.T) {
	for name, c := range map[string]struct {
		key   string
		green map[string]int // where four streams go
		ends  int            // of the two streams on a, while green is used
		back  map[string]int // where streams go that blue gets then
	}{
		"one-load":  {"", map[string]int{"b": 1, "c": 3}, 0, map[string]int{"a": 2, "b": 1}},
		"two-loads": {"{target}/{cluster}", map[string]int{"b": 2, "c": 2}, 2, map[string]int{"a": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := leastConnPolicy(t, map[string]any{"failurePenalty": "0s", "resourceKey": c.key})
			ns := startNodes(t, "a", "b", "c")
			p := startControlPlane(t, "route-"+name, policy)
			e := p.dial(all(ns...))
			route := func(to string, left *leastconntest.Node, nodes ...*leastconntest.Node) {
				p.routed = []string{to}
				p.serve(
					xdsCluster{name: "blue", policy: policy, regions: map[string][]*endpointpb.LbEndpoint{"here": healthy(t, ns[:2]...)}},
					xdsCluster{name: "green", policy: policy, regions: map[string][]*endpointpb.LbEndpoint{"here": healthy(t, ns[1:]...)}},
				)
				wait(t, "nobody lists the nodes of the other cluster", func() bool { return len(e.endpoint(left).Members) == 0 })
				if c.key != "" {
					e.key = e.conn.CanonicalTarget() + "/" + to
				}
				e.waitReady(all(nodes...)...)
			}
			a, b, z := ns[0], ns[1], ns[2]
			route("blue", z, a, b)
			onA, onB := on("a", e.hold(4, map[string]int{"a": 2, "b": 2}))
			route("green", a, b, z)
			green := e.hold(4, c.green)
			e.alive(onA, onB, green)
			e.endAll(onA[:c.ends])

			route("blue", z, a, b)
			back := e.hold(c.back["a"]+c.back["b"], c.back)
			for i, n := range ns {
				want := []int{2 - c.ends + c.back["a"], 2 + c.green["b"] + c.back["b"], c.green["c"]}[i]
				require.NoError(t, n.WaitLive(t.Context(), want), n.Name())
			}
			e.endAll(onA[c.ends:], onB, green, back)
		})
	}
}

// slowPolicy is a policy that takes until a test lets it to be built.
const slowPolicy = "test_slow"

type slowBuilder struct{ begun, goOn chan struct{} }

var slow = slowBuilder{make(chan struct{}), make(chan struct{})}

func init() { balancer.Register(slow) }

func (slowBuilder) Name() string { return slowPolicy }

func (b slowBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	b.begun <- struct{}{}
	<-b.goOn
	return balancer.Get("round_robin").Build(cc, opts)
}

// RPCs that begin while gRPC takes up a route to a new cluster may fail, since they are sent there before
// there is a policy for it: here for as long as it takes to be built.
func TestRPCsFailWhileARouteIsTakenUp(t *testing.T) {
	t.Parallel()
	ns := startNodes(t, "a")
	policy := leastConnPolicy(t, map[string]any{})
	p := startControlPlane(t, "route-taken-up", policy)
	e := p.dial(all(ns...))
	route := func(to string) {
		here := map[string][]*endpointpb.LbEndpoint{"here": healthy(t, ns...)}
		p.routed = []string{to}
		p.serve(
			xdsCluster{name: "fast", policy: policy, regions: here},
			xdsCluster{name: "slow", policy: xdsPolicy(t, &xdstypepb.TypedStruct{TypeUrl: "type.googleapis.com/" + slowPolicy}), regions: here},
		)
	}
	route("fast")
	e.waitReady(all(ns...)...)
	route("slow")
	<-slow.begun
	_, err := e.unary()
	slow.goOn <- struct{}{}
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	require.ErrorContains(t, err, "unknown cluster selected for RPC")
	e.served("a")
}
