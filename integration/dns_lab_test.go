package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	_ "github.com/leastconn/grpc-leastconn/resolver/dns"
	"github.com/leastconn/grpc-leastconn/state"
)

// startNodesOn starts a node on each of the addresses of loopback, all with the
// same port, and names them a, b and so on.
func startNodesOn(t *testing.T, opts leastconntest.Options, ips ...string) (nodes []*leastconntest.Node, port string) {
	t.Helper()
	var err error
	for range 20 { // a port that is free on one address may be in use on another
		if nodes, port, err = tryNodesOn(opts, ips...); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	require.NoError(t, err)
	t.Cleanup(func() { leastconntest.CloseNodes(nodes...) })
	return nodes, port
}

func tryNodesOn(opts leastconntest.Options, ips ...string) (nodes []*leastconntest.Node, port string, err error) {
	port = "0"
	for i, ip := range ips {
		opts.Name, opts.Addr = string(rune('a'+i)), net.JoinHostPort(ip, port)
		if i > 25 {
			opts.Name = fmt.Sprint("n", i)
		}
		n, err := leastconntest.StartNode(opts)
		if err != nil {
			leastconntest.CloseNodes(nodes...)
			return nil, "", err
		}
		nodes = append(nodes, n)
		_, port, _ = net.SplitHostPort(n.Addr())
	}
	return nodes, port, nil
}

// link is a channel to any target, with least_conn.
type link struct {
	t      *testing.T
	conn   *grpc.ClientConn
	client grpc_testing.TestServiceClient
}

// dialTarget opens a channel for as long as the test runs.
func dialTarget(t *testing.T, target string, opts ...grpc.DialOption) *link {
	t.Helper()
	opts = append([]grpc.DialOption{
		grpc.WithNoProxy(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(leastconntest.DefaultServiceConfig),
	}, opts...)
	conn, err := grpc.NewClient(target, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	conn.Connect()
	return &link{t: t, conn: conn, client: grpc_testing.NewTestServiceClient(conn)}
}

// held is an open stream and the node that serves it.
type held struct {
	node string
	call grpc_testing.TestService_FullDuplexCallClient
}

// ping shows that the stream is alive at both ends.
func (h held) ping() error {
	if err := h.call.Send(&grpc_testing.StreamingOutputCallRequest{}); err != nil && err != io.EOF {
		return err
	}
	_, err := h.call.Recv()
	return err
}

// open opens a stream that lives as long as the channel.
func (l *link) open(ctx context.Context) (held, error) {
	call, err := l.client.FullDuplexCall(ctx)
	if err != nil {
		return held{}, err
	}
	if _, err := call.Recv(); err != nil {
		return held{}, err
	}
	header, err := call.Header()
	if err != nil {
		return held{}, err
	}
	return held{node: header.Get(leastconntest.NodeHeader)[0], call: call}, nil
}

// hold opens n streams, one after another, and returns how many went where.
func (l *link) hold(n int) (streams []held, by map[string]int) {
	l.t.Helper()
	by = map[string]int{}
	for range n {
		s, err := l.open(l.t.Context())
		require.NoError(l.t, err)
		streams = append(streams, s)
		by[s.node]++
	}
	return streams, by
}

// alive checks that none of the streams has ended.
func (l *link) alive(streams []held) {
	l.t.Helper()
	for _, s := range streams {
		require.NoError(l.t, s.ping(), "stream on %s", s.node)
	}
}

// unary makes an RPC that does not wait for a connection.
func (l *link) unary() (node string, err error) {
	ctx, cancel := context.WithTimeout(l.t.Context(), 20*time.Second)
	defer cancel()
	r, err := l.client.UnaryCall(ctx, &grpc_testing.SimpleRequest{})
	return r.GetUsername(), err
}

// entry returns what the channel's ledger knows of an address.
func (l *link) entry(addr string) (n state.EndpointSnapshot, found bool) {
	l.t.Helper()
	for _, n := range l.entries() {
		if slices.Contains(n.Addresses, addr) {
			return n, true
		}
	}
	return n, false
}

func (l *link) entries() []state.EndpointSnapshot {
	l.t.Helper()
	for _, ledger := range state.Ledgers() {
		if ledger.Key() == l.conn.CanonicalTarget() {
			require.NoError(l.t, ledger.Check())
			return ledger.Snapshot().Endpoints
		}
	}
	return nil
}

// usable reports whether the channel can send RPCs to the node.
func (l *link) usable(n *leastconntest.Node) bool {
	e, _ := l.entry(n.Addr())
	return len(e.Members) == 1 && e.Members[0].Ready
}

func (l *link) waitUsable(nodes ...*leastconntest.Node) {
	l.t.Helper()
	for _, n := range nodes {
		wait(l.t, n.Name()+" is usable", func() bool { return l.usable(n) })
	}
}

// inFlight returns the ledger's counts of the nodes, in their order.
func (l *link) inFlight(nodes ...*leastconntest.Node) (counts []int) {
	l.t.Helper()
	for _, n := range nodes {
		e, _ := l.entry(n.Addr())
		counts = append(counts, int(e.InFlight))
	}
	return counts
}
