package integration

import (
	"io"
	"testing"

	"github.com/sercand/kuberesolver/v6"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// startPods starts nodes named a, b and so on, each on an address of its own as
// pods are, and an API server that can list them.
func startPods(t *testing.T, ips ...string) ([]*leastconntest.Node, *kubeAPI) {
	t.Helper()
	ns, port := startNodesOn(t, leastconntest.Options{}, ips...)
	return ns, startKubeAPI(t, port)
}

// dialPods opens a channel to the pods that the API server lists, for as long
// as the test runs.
func dialPods(t *testing.T, a *kubeAPI) *link {
	t.Helper()
	conn, err := dialKubernetes(kuberesolver.NewInsecureK8sClient(a.url), "kubernetes:///chat.shop:grpc")
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	conn.Connect()
	return &link{t: t, conn: conn, client: grpc_testing.NewTestServiceClient(conn)}
}

// TestD68KuberesolverSeesAScaleOut: a third pod is ready and takes the next
// streams until it is level. One that terminates gets no more, and its streams
// live on.
func TestD68KuberesolverSeesAScaleOut(t *testing.T) {
	ns, api := startPods(t, "127.0.0.1", "127.0.0.2", "127.0.0.3")
	api.set("chat-x7k2p", pod("127.0.0.1"), pod("127.0.0.2"))
	l := dialPods(t, api)
	l.waitUsable(ns[:2]...)
	streams, by := l.hold(6)
	require.Equal(t, map[string]int{"a": 3, "b": 3}, by)

	api.set("chat-x7k2p", pod("127.0.0.1"), pod("127.0.0.2"), pod("127.0.0.3"))
	l.waitUsable(ns[2])
	more, by := l.hold(3)
	require.Equal(t, map[string]int{"c": 3}, by)
	streams = append(streams, more...)
	more, by = l.hold(3)
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, by)
	streams = append(streams, more...)

	api.set("chat-x7k2p", terminating("127.0.0.1"), pod("127.0.0.2"), pod("127.0.0.3"))
	wait(t, "a is not used", func() bool { return !l.usable(ns[0]) })
	more, by = l.hold(4)
	require.Equal(t, map[string]int{"b": 2, "c": 2}, by)
	l.alive(append(streams, more...))
	require.Equal(t, []int{4, 6, 6}, l.inFlight(ns...))
	for _, n := range ns {
		require.Equal(t, 1, n.Conns(), "connections to %s so far", n.Name())
	}
	require.Equal(t, 1, api.watched())
}

// TestD70KuberesolverRollingUpdate: all pods are replaced at once. No RPC
// fails, old streams live on, new ones go to the new pods, and when the old
// streams have ended nothing is left of the old pods.
func TestD70KuberesolverRollingUpdate(t *testing.T) {
	ns, api := startPods(t, "127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4")
	api.set("chat-x7k2p", pod("127.0.0.1"), pod("127.0.0.2"))
	l := dialPods(t, api)
	l.waitUsable(ns[:2]...)
	streams, _ := l.hold(6)

	calls := callAllTheTime(l)
	api.set("chat-x7k2p", terminating("127.0.0.1"), terminating("127.0.0.2"), pod("127.0.0.3"), pod("127.0.0.4"))
	l.waitUsable(ns[2:]...)
	calls.waitMore(100)
	require.NoError(t, calls.end())
	_, by := l.hold(4)
	require.Equal(t, map[string]int{"c": 2, "d": 2}, by)
	l.alive(streams)
	require.Equal(t, []int{3, 3, 2, 2}, l.inFlight(ns...))

	for _, s := range streams {
		require.NoError(t, s.call.CloseSend())
		_, err := s.call.Recv()
		require.Equal(t, io.EOF, err)
	}
	wait(t, "a and b are forgotten", func() bool { return len(l.entries()) == 2 })
}

// TestKuberesolverWatchesAgain: the API server ends the watch. RPCs go on with
// the last list, and a pod that is ready by then is seen by the next watch.
func TestKuberesolverWatchesAgain(t *testing.T) {
	ns, api := startPods(t, "127.0.0.1", "127.0.0.2")
	api.set("chat-x7k2p", pod("127.0.0.1"))
	l := dialPods(t, api)
	l.waitUsable(ns[0])
	streams, _ := l.hold(2)

	calls := callAllTheTime(l)
	api.endWatches()
	api.set("chat-x7k2p", pod("127.0.0.1"), pod("127.0.0.2"))
	l.waitUsable(ns[1])
	require.NoError(t, calls.end())
	require.Equal(t, 2, api.watched())
	_, by := l.hold(2)
	require.Equal(t, map[string]int{"b": 2}, by)
	l.alive(streams)
}

// TestKuberesolverKnowsOneSlice: a service of more than one EndpointSlice is,
// to kuberesolver, the slice that changed last. The policy cannot mend that; it
// does keep the counts of the others.
func TestKuberesolverKnowsOneSlice(t *testing.T) {
	ns, api := startPods(t, "127.0.0.1", "127.0.0.2")
	api.set("chat-x7k2p", pod("127.0.0.1"))
	l := dialPods(t, api)
	l.waitUsable(ns[0])
	streams, _ := l.hold(2)

	api.set("chat-9qd4m", pod("127.0.0.2"))
	wait(t, "only b is used", func() bool { return l.usable(ns[1]) && !l.usable(ns[0]) })
	_, by := l.hold(1)
	require.Equal(t, map[string]int{"b": 1}, by)

	api.set("chat-x7k2p", pod("127.0.0.1"))
	wait(t, "only a is used", func() bool { return l.usable(ns[0]) && !l.usable(ns[1]) })
	l.alive(streams)
	require.Equal(t, []int{2, 1}, l.inFlight(ns...))
}

// TestDialInCluster: outside of a cluster there is an error that says so.
func TestDialInCluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := dialInCluster("kubernetes:///chat.shop:grpc")
	require.ErrorContains(t, err, "KUBERNETES_SERVICE_HOST")
}
