package kubernetes

import (
	"context"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/client-go/rest"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// A third pod is listed, in a slice of its own, and takes the next streams until
// it is level; streams that there are do not notice. One that gets unready gets no more
// and keeps its streams, with which it is known when it returns.
func TestChannelSeesAScaleOut(t *testing.T) {
	e := startEnv(t, 3)
	e.put("1", e.ready(0, 1)...)
	e.dial("k8s:///chat.shop:grpc")
	e.waitReady(0, 1)
	streams := e.hold(6, map[string]int{"a": 3, "b": 3})
	e.put("2", e.ready(2)...)
	e.waitReady(0, 1, 2)
	streams = append(streams, e.hold(3, map[string]int{"c": 3})...)
	streams = append(streams, e.hold(3, map[string]int{"a": 1, "b": 1, "c": 1})...)
	e.counts(streams, 4, 4, 4)
	e.connectedOnce(0, 1, 2)

	e.put("1", e.pod(0, down), e.pod(1, pod))
	e.waitReady(1, 2)
	streams = append(streams, e.hold(4, map[string]int{"b": 2, "c": 2})...)
	e.counts(streams, 4, 6, 6)
	e.put("1", e.ready(0, 1)...)
	e.waitReady(0, 1, 2)
	streams = append(streams, e.hold(2, map[string]int{"a": 2})...)
	e.counts(streams, 6, 6, 6)
}

// A rolling restart: a pod that is terminating gets nothing new, its streams live
// on and are counted, and those that can move go. No RPC fails. When its streams
// have ended it is forgotten.
func TestChannelSeesARollingRestart(t *testing.T) {
	e := startEnv(t, 4)
	e.put("1", e.ready(0, 1, 2)...)
	e.dial("k8s:///chat.shop:grpc")
	e.waitReady(0, 1, 2)
	streams := e.hold(6, map[string]int{"a": 2, "b": 2, "c": 2})
	endSession, served := e.session()
	x := int((<-served)[0] - 'a')
	old := streams[:0:0]
	for _, s := range streams {
		if s.Node() == e.nodes[x].Name() {
			old = append(old, s)
		}
	}
	others := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == x })
	endCalls := e.calls()
	e.put("1", append(e.ready(others...), e.pod(x, ending))...)
	require.NotEqual(t, e.nodes[x].Name(), <-served)
	e.put("2", e.ready(3)...)
	e.waitReady(append(others, 3)...)
	endCalls(50)
	endSession()
	streams = append(streams, e.hold(2, map[string]int{"d": 2})...)
	e.counts(streams, 2, 2, 2, 2)
	e.connectedOnce(0, 1, 2, 3)

	e.put("1", e.ready(others...)...) // the pod has gone; here it still serves
	waitFor(t, "nobody lists the pod", func() bool { return len(e.known(x).Members) == 0 })
	e.counts(streams, 2, 2, 2, 2)
	for _, s := range old {
		require.NoError(t, s.End())
	}
	waitFor(t, "the pod is forgotten", func() bool { return e.known(x).Addresses == nil })
}

// session runs a stream that moves. The channel it returns has the node of each
// RPC that carries it; end ends it.
func (e *env) session() (end func(), moved <-chan string) {
	nodes, ended := make(chan string, 10), make(chan error, 1)
	ctx, cancel := context.WithCancel(e.ctx)
	go func() {
		ended <- leastconnbalancer.Run(ctx, func(ctx context.Context, moved <-chan struct{}) error {
			call, err := grpc_testing.NewTestServiceClient(e.conn).FullDuplexCall(ctx)
			if err != nil {
				return err
			}
			header, err := call.Header()
			if err != nil {
				return err
			}
			nodes <- header.Get("node")[0]
			select {
			case <-moved:
			case <-ctx.Done():
			}
			_ = call.CloseSend()
			for err == nil {
				_, err = call.Recv()
			}
			if err == io.EOF {
				return nil
			}
			return err
		})
	}()
	return func() {
		cancel()
		<-ended
	}, nodes
}

// While the API server is away no RPC fails, and no count changes but by RPCs.
// What is listed meanwhile is seen then.
func TestChannelOutlastsTheAPIServer(t *testing.T) {
	e := startEnv(t, 3)
	e.put("1", e.ready(0, 1)...)
	e.dial("k8s:///chat:grpc") // in the default namespace, which the ledger's name shows
	e.waitReady(0, 1)
	streams := e.hold(2, map[string]int{"a": 1, "b": 1})
	endCalls := e.calls()
	e.api.stop()
	endCalls(200)
	streams = append(streams, e.hold(2, map[string]int{"a": 1, "b": 1})...)
	e.put("2", e.ready(2)...)
	e.api.start()
	e.waitReady(0, 1, 2)
	streams = append(streams, e.hold(2, map[string]int{"c": 2})...)
	e.counts(streams, 2, 2, 2)
	e.connectedOnce(0, 1, 2)
}

// A channel to a service that is not there fails RPCs with the reason; RPCs that
// wait get through when it is.
func TestChannelWaitsForAService(t *testing.T) {
	e := startEnv(t, 1)
	e.dial("k8s:///chat.shop:grpc")
	client := grpc_testing.NewTestServiceClient(e.conn)
	_, err := client.UnaryCall(e.ctx, &grpc_testing.SimpleRequest{})
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorContains(t, err, "k8s: service chat in namespace shop: it has no EndpointSlices")
	answered := make(chan error, 1)
	go func() {
		_, err := client.UnaryCall(e.ctx, &grpc_testing.SimpleRequest{}, grpc.WaitForReady(true))
		answered <- err
	}()
	e.put("1", e.ready(0)...)
	require.NoError(t, <-answered)

	e.put("1", e.pod(0, down))
	waitFor(t, "the reason", func() bool {
		_, err = client.UnaryCall(e.ctx, &grpc_testing.SimpleRequest{})
		return err != nil && status.Convert(err).Message() == "name resolver error: k8s: service chat in namespace shop: none of its 1 endpoints is ready"
	})
}

// Pods of other zones are used when none of the own zone is left.
func TestChannelPrefersItsZone(t *testing.T) {
	e := startEnv(t, 2)
	far := func(uid, ip string) discovery.Endpoint { return in("eu-1b", pod(uid, ip)) }
	e.put("1", e.pod(0, far), e.pod(1, func(uid, ip string) discovery.Endpoint { return in("eu-1a", pod(uid, ip)) }))
	e.dial("k8s:///chat.shop:grpc?zone=eu-1a")
	e.waitReady(0, 1)
	e.hold(3, map[string]int{"b": 3})
	e.put("1", e.pod(0, far))
	e.waitReady(0)
	e.hold(3, map[string]int{"a": 3})
}

// RPCs fail with what is wrong with options, a client or a target.
func TestChannelsThatCannotResolve(t *testing.T) {
	for _, test := range []struct {
		target  string
		builder resolver.Builder
		want    string
	}{
		{"k8s:///chat?zone=", NewBuilder(typed{}, Options{}), `k8s: target "k8s:///chat?zone=": parameter zone: value "": want the name of a zone`},
		{"k8s:///chat", NewBuilder(typed{}, Options{Namespace: "No"}), `k8s: Options.Namespace "No": want 1 to 63 lower case letters`},
		{"k8s:///chat", NewBuilder(typed{}, Options{Zone: "a b"}), `k8s: Options.Zone "a b": want the name of a zone`},
		{"k8s:///chat", NewBuilder[restClient](nil, Options{}), "k8s: client: value nil: want one, such as clientset.DiscoveryV1()"},
	} {
		conn, err := grpc.NewClient(test.target, grpc.WithResolvers(test.builder), grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		_, err = grpc_testing.NewTestServiceClient(conn).UnaryCall(t.Context(), &grpc_testing.SimpleRequest{})
		require.NoError(t, conn.Close())
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.ErrorContains(t, err, test.want)
	}
}

// A client of the caller's is asked about the namespace of the options.
func TestChannelWithAClient(t *testing.T) {
	e := startEnv(t, 1)
	client, err := connect(&rest.Config{Host: "http://" + e.api.addr})
	require.NoError(t, err)
	e.put("1", e.ready(0)...)
	conn, err := grpc.NewClient("k8s:///chat:grpc", grpc.WithResolvers(NewBuilder(typed{client}, Options{Namespace: "shop"})),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	require.NoError(t, err)
	defer conn.Close()
	answer, err := grpc_testing.NewTestServiceClient(conn).UnaryCall(t.Context(), &grpc_testing.SimpleRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
	require.Equal(t, "a", answer.GetUsername())
}

// typed has the method of client-go's DiscoveryV1Interface by which it is given.
type typed struct{ connection }

func (c typed) EndpointSlices(namespace string) restClient {
	return c.connection(namespace).(restClient)
}
