package leastconnbalancer_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// walk opens and ends streams at random while the list, its weights and the
// connections change, and knows by itself where a stream may go.
type walk struct {
	*lab
	channel *channel
	nodes   []*leastconntest.Node
	weights map[string]uint32 // of the nodes that are listed
	open    map[string]int    // streams by node
	streams []*leastconntest.Stream
}

// The counts follow the nodes through every change, and each stream goes to a
// node that none beats.
func TestStreamsOverAListThatChangesAtRandom(t *testing.T) {
	w := &walk{lab: newLab(t), weights: map[string]uint32{}, open: map[string]int{}}
	w.nodes = w.lab.nodes(names(6)...)
	w.channel = w.dial()
	w.list()
	for range 400 {
		switch rand.IntN(12) {
		case 0:
			w.list()
		case 1:
			w.age()
		case 2, 3, 4:
			w.end()
		default:
			w.begin()
		}
		for _, n := range w.nodes {
			got, _ := w.channel.inFlight(n)
			require.Equal(t, w.open[n.Name()], got, "in flight at %s", n.Name())
		}
	}
	require.NoError(t, leastconntest.PingAll(w.streams))
	for _, n := range w.nodes {
		require.NoError(t, n.WaitLive(w.ctx, w.open[n.Name()]))
	}
}

// list takes some of the nodes, one with a weight above 0 among them.
func (w *walk) list() {
	some := slices.Clone(w.nodes)
	rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	some = some[:1+rand.IntN(len(some))]
	weights := make([]uint32, len(some))
	clear(w.weights)
	for i, n := range some {
		weights[i] = rand.Uint32N(4)
		if i == 0 {
			weights[i]++
		}
		w.weights[n.Name()] = weights[i]
	}
	require.NoError(w, w.channel.UpdateState(weighings[0].state(some, weights...)))
	w.channel.waitReady(some...)
}

// age sends a GOAWAY to the connection of a node that is listed.
func (w *walk) age() {
	n := w.nodes[rand.IntN(len(w.nodes))]
	if _, listed := w.weights[n.Name()]; !listed {
		return
	}
	before := n.Conns()
	n.GoAway()
	w.wait("a new connection to "+n.Name(), func() bool { return n.Conns() > before && w.channel.ready(n) })
}

func (w *walk) end() {
	if len(w.streams) == 0 {
		return
	}
	i := rand.IntN(len(w.streams))
	s := w.streams[i]
	if rand.IntN(2) == 0 {
		s.Cancel()
	} else {
		require.NoError(w, s.End())
	}
	w.open[s.Node()]--
	w.streams = slices.Delete(w.streams, i, i+1)
}

func (w *walk) begin() {
	s, err := w.channel.Open(w.ctx)
	require.NoError(w, err)
	require.NotZero(w, w.weights[s.Node()], "%s is not listed or drains", s.Node())
	w.open[s.Node()]++
	open, weights := 0.0, 0.0
	for name, weight := range w.weights {
		if weight > 0 {
			open += float64(w.open[name])
			weights += float64(weight)
		}
	}
	share := open * float64(w.weights[s.Node()]) / weights
	require.Less(w, float64(w.open[s.Node()]), share+1, "%s, with %v open and weights %v", s.Node(), w.open, w.weights)
	w.streams = append(w.streams, s)
}
