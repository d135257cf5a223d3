package integration

import (
	"slices"
	"testing"

	"github.com/sercand/kuberesolver/v6"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// list has pods ready, and those that were listed before and are not terminating.
func (a *kubeAPI) list(nodes ...*leastconntest.Node) {
	var pods []kubeEndpoint
	for _, n := range nodes {
		if !slices.Contains(a.pods, n) {
			a.pods = append(a.pods, n)
		}
	}
	for _, n := range a.pods {
		pods = append(pods, pod(n, slices.Contains(nodes, n)))
	}
	a.set("chat-x7k2p", pods...)
}

// pod is one that is ready, or that ends and still serves what it has.
func pod(n *leastconntest.Node, ready bool) kubeEndpoint {
	return kubeEndpoint{
		Addresses:  []string{ipOf(n)},
		Conditions: map[string]bool{"ready": ready, "serving": true, "terminating": !ready},
	}
}

// dial opens a channel to the pods as the document shows it.
func (a *kubeAPI) dial(nodes ...*leastconntest.Node) *env {
	a.Helper()
	e := newEnv(a.T, all(nodes...))
	var err error
	e.conn, err = dialKubernetes(kuberesolver.NewInsecureK8sClient(a.url), "kubernetes:///chat.shop:grpc")
	require.NoError(a, err)
	a.Cleanup(func() { e.conn.Close() })
	e.conn.Connect()
	e.key = e.conn.CanonicalTarget()
	return e
}

// outage is the end of a watch, after which there is another one.
func (a *kubeAPI) outage(start func() *traffic) {
	tr, watches := start(), a.watched()
	a.endWatches()
	tr.until("it watches again", func() bool { return a.watched() == watches+1 })
	tr.through("a", 50)
	require.Empty(a, tr.end())
}

// A service of more than one EndpointSlice is, to kuberesolver, the slice that
// changed last. The policy cannot mend that; it does keep the counts of the
// others.
func TestKuberesolverKnowsOneSlice(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1", "127.0.0.2")
	a := startKubeAPI(t, port)
	a.set("chat-x7k2p", pod(ns[0], true))
	e := a.dial(ns...)
	e.waitReady(ns[0])
	streams := e.hold(2, map[string]int{"a": 2})
	a.set("chat-9qd4m", pod(ns[1], true))
	e.waitReady(ns[1])
	e.waitNotReady(ns[0])
	e.hold(1, map[string]int{"b": 1})

	a.set("chat-x7k2p", pod(ns[0], true))
	e.waitReady(ns[0])
	e.waitNotReady(ns[1])
	e.alive(streams)
	e.inFlight(2, 1)
}

// Outside of a cluster there is an error that says so.
func TestDialInCluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := dialInCluster("kubernetes:///chat.shop:grpc")
	require.ErrorContains(t, err, "KUBERNETES_SERVICE_HOST")
}
