package integration

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"

	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

// withoutPenalty selects the policy without its penalty for fresh failures, for
// tests that look where streams go just after others have broken.
const withoutPenalty = `{"loadBalancingConfig":[{"least_conn":{"failurePenalty":"0s"}}]}`

// ignoringLimits lets RPCs wait in connections, too.
const ignoringLimits = `{"loadBalancingConfig":[{"least_conn":{"failurePenalty":"0s","streamLimit":"ignore"}}]}`

// server is a node, which is Go's, a server of another language, or a proxy.
type server interface {
	Addr() string
	Name() string
	Live() int // RPCs that it handles now; those of the nodes behind a proxy
}

// all returns servers of one type as servers.
func all[S server](some ...S) []server {
	servers := make([]server, len(some))
	for i, s := range some {
		servers[i] = s
	}
	return servers
}

// env is a channel with least_conn, and the servers that it has heard of, for as
// long as a test runs.
type env struct {
	*testing.T
	conn    *grpc.ClientConn
	key     string                 // of its ledger
	channel *leastconntest.Channel // which lists what the test says; nil if conn has another resolver
	servers []server               // all that were ever listed, in the order they came
	conns   *connections
	ctx     context.Context // RPCs with it are held by their server
}

func newEnv(t *testing.T, servers []server) *env {
	e := &env{T: t, servers: servers, conns: newConnections()}
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience) // of streams that nobody ends
	t.Cleanup(cancel)
	e.ctx = metadata.AppendToOutgoingContext(ctx, "hold", "true")
	return e
}

// dialOptions has connections counted, and broken ones made again soon.
func (e *env) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithStatsHandler(e.conns),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond},
			MinConnectTimeout: time.Minute,
		}),
	}
}

// dial opens a channel to the servers.
func dial(t *testing.T, cfg leastconntest.ChannelConfig, servers ...server) *env {
	t.Helper()
	e := newEnv(t, servers)
	cfg.Endpoints, cfg.DialOptions = endpointsOf(servers), append(e.dialOptions(), cfg.DialOptions...)
	var err error
	e.channel, err = leastconntest.Dial(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { e.channel.Close() })
	e.channel.Connect()
	e.conn, e.key = e.channel.Conn(), e.channel.Conn().CanonicalTarget()
	return e
}

// dialReady opens a channel and waits until it can use the servers.
func dialReady(t *testing.T, servers ...server) *env {
	t.Helper()
	e := dial(t, leastconntest.ChannelConfig{ServiceConfig: withoutPenalty}, servers...)
	e.waitReady(servers...)
	return e
}

// dialTarget opens a channel to a target that has a resolver of its own, which
// will list none but the servers.
func dialTarget(t *testing.T, target string, servers []server, opts ...grpc.DialOption) *env {
	t.Helper()
	e := newEnv(t, servers)
	opts = slices.Concat(e.dialOptions(), []grpc.DialOption{
		grpc.WithNoProxy(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(withoutPenalty),
	}, opts)
	var err error
	e.conn, err = grpc.NewClient(target, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { e.conn.Close() })
	e.conn.Connect()
	e.key = e.conn.CanonicalTarget()
	return e
}

func endpointsOf(servers []server) []resolver.Endpoint {
	endpoints := make([]resolver.Endpoint, len(servers))
	for i, s := range servers {
		endpoints[i] = resolver.Endpoint{Addresses: []resolver.Address{{Addr: s.Addr()}}}
	}
	return endpoints
}

// list has the resolver list exactly the servers and waits until the channel can
// use them.
func (e *env) list(servers ...server) {
	e.Helper()
	for _, s := range servers {
		if !slices.Contains(e.servers, s) {
			e.servers = append(e.servers, s)
		}
	}
	require.NoError(e, e.channel.Update(endpointsOf(servers)...))
	e.waitReady(servers...)
}

// snapshot is of the channel's ledger, which is checked.
func (e *env) snapshot() state.Snapshot {
	e.Helper()
	for _, l := range state.Ledgers() {
		if l.Key() == e.key {
			require.NoError(e, l.Check())
			return l.Snapshot()
		}
	}
	return state.Snapshot{}
}

// endpoint is what the ledger knows of a server; the zero value if nothing.
func (e *env) endpoint(s server) state.EndpointSnapshot {
	e.Helper()
	for _, n := range e.snapshot().Endpoints {
		if slices.Contains(n.Addresses, s.Addr()) {
			return n
		}
	}
	return state.EndpointSnapshot{}
}

// ready reports whether the channel can send RPCs to a server.
func (e *env) ready(s server) bool {
	members := e.endpoint(s).Members
	return len(members) == 1 && members[0].Ready
}

func (e *env) waitReady(servers ...server) {
	e.Helper()
	for _, s := range servers {
		wait(e.T, s.Name()+" is ready", func() bool { return e.ready(s) })
	}
}

// waitReadyOfTwo waits until each of two channels that share their load can use
// the servers.
func (e *env) waitReadyOfTwo(servers ...server) {
	e.Helper()
	for _, s := range servers {
		wait(e.T, "both can use "+s.Name(), func() bool {
			members := e.endpoint(s).Members
			return len(members) == 2 && members[0].Ready && members[1].Ready
		})
	}
}

func (e *env) waitNotReady(servers ...server) {
	e.Helper()
	for _, s := range servers {
		wait(e.T, s.Name()+" is not ready", func() bool { return !e.ready(s) })
	}
}

// counts checks that so many RPCs are in flight on the servers and no other,
// and waits until the servers see as many.
func (e *env) counts(want ...int) {
	e.Helper()
	e.inFlight(want...)
	for i, s := range e.servers {
		wait(e.T, s.Name()+" handles what is counted", func() bool { return s.Live() == want[i] })
	}
}

// inFlight is counts as the ledger alone has it.
func (e *env) inFlight(want ...int) {
	e.Helper()
	got := make([][]int, len(e.servers)) // by server: each must be one endpoint
	for _, n := range e.snapshot().Endpoints {
		i := slices.IndexFunc(e.servers, func(s server) bool { return slices.Contains(n.Addresses, s.Addr()) })
		require.GreaterOrEqual(e, i, 0, "nobody has listed %v", n.Addresses)
		got[i] = append(got[i], int(n.InFlight))
	}
	for i, s := range e.servers {
		if want[i] == 0 && got[i] == nil {
			continue // a server that nobody lists is forgotten with its last RPC
		}
		require.Equal(e, []int{want[i]}, got[i], "in flight on %s", s.Name())
	}
}

// connected waits until so many connections to a server are open.
func (e *env) connected(s server, want int) {
	e.Helper()
	wait(e.T, strconv.Itoa(want)+" connections to "+s.Name(), func() bool {
		_, open := e.conns.of(s)
		return open == want
	})
}

// connectedOnce checks that each of the nodes has had one connection, which is
// open.
func (e *env) connectedOnce(nodes ...*leastconntest.Node) {
	e.Helper()
	for _, n := range nodes {
		require.Equal(e, []int{1, 1}, []int{n.Conns(), n.OpenConns()}, "connections to %s, so far and open", n.Name())
	}
}
