package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	_ "google.golang.org/grpc/balancer/randomsubsetting"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/xds" // registers outlier_detection_experimental

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Without the penalty, which gives a host that fails too little to be judged by.
const underOutlierDetection = `{"loadBalancingConfig":[{"outlier_detection_experimental":{
	"interval":"0.2s","baseEjectionTime":"0.5s","maxEjectionTime":"0.5s","maxEjectionPercent":50,
	"failurePercentageEjection":{"threshold":50,"enforcementPercentage":100,"minimumHosts":3,"requestVolume":5},
	"childPolicy":[{"least_conn":{"failurePenalty":"0s"}}]}}]}`

// A host that fails is ejected and gets nothing, its streams live on; once it is
// back its count is the one it had.
func TestOutlierDetectionOverLeastConn(t *testing.T) {
	ns := startNodes(t, "a", "b", "c")
	e := dial(t, leastconntest.ChannelConfig{ServiceConfig: underOutlierDetection}, all(ns...)...)
	e.ejectAndReturn(ns)
}

// ejectAndReturn has the first of three nodes, a, fail until it is ejected.
func (e *env) ejectAndReturn(ns []*leastconntest.Node) {
	e.Helper()
	a := ns[0]
	e.waitReady(all(ns...)...)
	streams := e.hold(6, map[string]int{"a": 2, "b": 2, "c": 2})
	a.SetFail(codes.Internal)
	wait(e.T, "a is ejected", func() bool {
		e.unary()
		return !e.ready(a)
	})
	e.counts(2, 2, 2)

	a.SetFail(codes.OK)
	before := a.Started()
	e.hold(2, map[string]int{"b": 1, "c": 1})
	require.Equal(e, before, a.Started(), "RPCs on the ejected host")
	e.waitReady(a)
	e.counts(2, 3, 3)
	e.hold(1, map[string]int{"a": 1})
	e.hold(3, map[string]int{"a": 1, "b": 1, "c": 1})
	e.counts(4, 4, 4)
	e.alive(streams)
}

const underSubsetting = `{"loadBalancingConfig":[{"random_subsetting_experimental":{
	"subsetSize":3,"childPolicy":[{"least_conn":{}}]}}]}`

// Three of ten nodes get connections and equal shares; when the subset changes,
// those that stay keep their counts.
func TestRandomSubsettingOverLeastConn(t *testing.T) {
	names := make([]string, 10)
	for i := range names {
		names[i] = fmt.Sprint("n", i)
	}
	ns := startNodes(t, names...)
	e := dial(t, leastconntest.ChannelConfig{ServiceConfig: underSubsetting}, all(ns...)...)
	var in, out []*leastconntest.Node
	wait(t, "three nodes are ready", func() bool {
		in, out = nil, nil
		for _, n := range ns {
			if e.ready(n) {
				in = append(in, n)
			} else {
				out = append(out, n)
			}
		}
		return len(in) == 3
	})
	streams := e.hold(30, map[string]int{in[0].Name(): 10, in[1].Name(): 10, in[2].Name(): 10})
	for _, n := range out {
		require.Zero(t, n.OpenConns(), n.Name())
	}

	// Without one of the subset another one of the ten moves up.
	require.NoError(t, e.channel.UpdateNodes(append(out[:len(out):len(out)], in[1:]...)...))
	var joined *leastconntest.Node
	wait(t, "another node is ready", func() bool {
		for _, n := range out {
			if e.ready(n) {
				joined = n
			}
		}
		return joined != nil
	})
	e.hold(10, map[string]int{joined.Name(): 10})
	for _, n := range append(in, joined) {
		require.EqualValues(t, 10, e.endpoint(n).InFlight, n.Name())
		require.Equal(t, 10, n.HeldStreams(), n.Name())
	}
	e.hold(3, map[string]int{joined.Name(): 1, in[1].Name(): 1, in[2].Name(): 1})
	e.alive(streams)
}
