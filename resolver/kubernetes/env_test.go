package kubernetes

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"
	discovery "k8s.io/api/discovery/v1"

	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// env is a channel with least_conn to the service chat, whose pods are nodes a,
// b and so on, each on an address of its own.
type env struct {
	*testing.T
	api   *apiServer
	nodes []*leastconntest.Node
	port  int32
	conn  *grpc.ClientConn
	ctx   context.Context
}

// startEnv starts as many pods and an API server that knows of none of them.
func startEnv(t *testing.T, pods int) *env {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	e := &env{T: t, api: startAPI(t), ctx: ctx}
	var err error
	for range 20 { // a port that is free on one address may be in use on another
		if err = e.startPods(pods); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	require.NoError(t, err)
	t.Cleanup(func() { leastconntest.CloseNodes(e.nodes...) })
	return e
}

func (e *env) startPods(pods int) error {
	leastconntest.CloseNodes(e.nodes...)
	e.nodes, e.port = nil, 0
	for i := range pods {
		addr := net.JoinHostPort("127.0.0."+strconv.Itoa(i+1), strconv.Itoa(int(e.port)))
		n, err := leastconntest.StartNode(leastconntest.Options{Name: string(rune('a' + i)), Addr: addr})
		if err != nil {
			return err
		}
		e.nodes = append(e.nodes, n)
		_, port, _ := net.SplitHostPort(n.Addr())
		number, _ := strconv.Atoi(port)
		e.port = int32(number)
	}
	return nil
}

// dial opens a channel to a target.
func (e *env) dial(target string) {
	e.Helper()
	conn, err := grpc.NewClient(target,
		grpc.WithResolvers(e.api.builder()),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"least_conn":{"rebalance":{"drainWithin":"100ms"}}}]}`))
	require.NoError(e, err)
	e.Cleanup(func() { conn.Close() })
	conn.Connect()
	e.conn = conn
}

// put has a slice list endpoints on the pods' port.
func (e *env) put(name string, endpoints ...discovery.Endpoint) {
	e.api.put(ports(slice(name, endpoints...), port("metrics", 9090), port("grpc", e.port)))
}

// pod returns the pod that is node i, in some condition.
func (e *env) pod(i int, make func(uid, ip string) discovery.Endpoint) discovery.Endpoint {
	ip, _, _ := net.SplitHostPort(e.nodes[i].Addr())
	return make(e.nodes[i].Name(), ip)
}

// ready returns the pods that are these nodes, all of them ready.
func (e *env) ready(nodes ...int) (pods []discovery.Endpoint) {
	for _, i := range nodes {
		pods = append(pods, e.pod(i, pod))
	}
	return pods
}

// known is what the ledger has of the node; the zero value if nothing.
func (e *env) known(i int) state.EndpointSnapshot {
	for _, l := range state.Ledgers() {
		if l.Key() != "k8s:///chat.shop:grpc" {
			continue
		}
		require.NoError(e, l.Check())
		for _, ep := range l.Snapshot().Endpoints {
			if slices.Contains(ep.Addresses, e.nodes[i].Addr()) {
				return ep
			}
		}
	}
	return state.EndpointSnapshot{}
}

// waitReady waits until exactly these of the nodes can be used.
func (e *env) waitReady(nodes ...int) {
	e.Helper()
	for i := range e.nodes {
		waitFor(e.T, e.nodes[i].Name()+" is as ready as it should be", func() bool {
			members := e.known(i).Members
			return slices.Contains(nodes, i) == (len(members) == 1 && members[0].Ready && members[0].Weight > 0)
		})
	}
}

// hold opens n streams, which must go to the nodes in want.
func (e *env) hold(n int, want map[string]int) (streams []*leastconntest.Stream) {
	e.Helper()
	for range n {
		s, err := leastconntest.Open(e.ctx, e.conn)
		require.NoError(e, err)
		streams = append(streams, s)
	}
	require.Equal(e, want, leastconntest.Counts(streams))
	return streams
}

// counts checks how many RPCs are in flight on each node, and that the streams
// live.
func (e *env) counts(streams []*leastconntest.Stream, want ...int64) {
	e.Helper()
	require.NoError(e, leastconntest.PingAll(streams))
	for i, n := range want {
		require.Equal(e, n, e.known(i).InFlight, "in flight on %s", e.nodes[i].Name())
	}
}

// connectedOnce checks that each of the nodes has had one connection, which is
// open.
func (e *env) connectedOnce(nodes ...int) {
	e.Helper()
	for _, i := range nodes {
		require.Equal(e, []int{1, 1}, []int{e.nodes[i].Conns(), e.nodes[i].OpenConns()}, "connections to %s, so far and open", e.nodes[i].Name())
	}
}

// calls makes unary RPCs without a pause, of which none may fail. The function
// that it returns ends them when there were some more.
func (e *env) calls() (end func(more int64)) {
	ctx, cancel := context.WithCancel(e.ctx)
	failed := make(chan error, 1)
	var done atomic.Int64
	go func() {
		defer close(failed)
		for ctx.Err() == nil {
			if _, err := grpc_testing.NewTestServiceClient(e.conn).UnaryCall(e.ctx, &grpc_testing.SimpleRequest{}); err != nil {
				failed <- err
				return
			}
			done.Add(1)
		}
	}()
	return func(more int64) {
		e.Helper()
		until := done.Load() + more
		waitFor(e.T, "RPCs", func() bool { return done.Load() >= until || len(failed) > 0 })
		cancel()
		require.NoError(e, <-failed)
	}
}
