package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// While the list of one is empty, as that of a priority below xDS whose endpoints all drain, sessions leave it for
// another one that serves. What has not gone when the list is back stays, if it lists their endpoint.
func TestStreamsOfAnEmptyEndpointSet(t *testing.T) {
	inTime(t, func(e *env) {
		home, away := newEnvNamed(e.T, e.ledger, "xds:///api"), newEnvNamed(e.T, e.ledger, "xds:///api")
		home.add("a", "b")
		s := home.streams()
		home.endpointSet.SetRebalance(quickly)
		away.endpointSet.SetRebalance(quickly)
		s.begin(8)
		home.remove("a")
		home.remove("b")
		pass(3 * time.Second)
		s.want(0, map[string]int{"a": 4, "b": 4})
		s.env, s.first = away, away.readySet
		away.add("c", "d")
		pass(state.Tick * 6)
		home.add("a")
		pass(3 * time.Second)
		require.NoError(t, e.ledger.Check())
		require.Positive(t, s.at("a"))
		s.want(8-s.at("a"), map[string]int{"b": 0})
		home.remove("a")
		pass(3 * time.Second)
		s.want(8, map[string]int{"c": 4, "d": 4})
		s.end()
	})
}

// quickly is how sessions are asked here.
var quickly = state.Rebalance{PerSecond: 1000, DrainWithin: time.Second}

// When a channel closes one of several endpoint sets, as for a locality below xDS, sessions leave the endpoints that
// none of its other ones lists, once that is so, and no others.
func TestStreamsOfAnEndpointSetThatCloses(t *testing.T) {
	for name, tt := range map[string]struct {
		heir string // its name
		told int
		want map[string]int
		last int // that were told once the heir lists a no more
	}{
		"of the same channel": {"xds:///api", 2, map[string]int{"a": 2, "b": 0, "c": 2}, 4},
		"of another channel":  {"xds:///other", 0, map[string]int{"a": 2, "b": 2, "c": 0}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(e *env) {
				east := newEnvNamed(e.T, e.ledger, "xds:///api")
				east.add("a", "b")
				s := east.streams()
				s.begin(4)
				west := newEnvNamed(e.T, e.ledger, tt.heir)
				west.add("c", "a")
				west.set("a", 0) // it drains here: what is the other one's stays
				west.endpointSet.SetRebalance(quickly)
				s.env, s.first = west, west.readySet
				east.endpointSet.Close()
				pass(3 * time.Second)
				s.want(tt.told, tt.want)
				require.EqualValues(t, tt.told, west.endpointSet.Counters().MovesDone.Departed)
				west.remove("a")
				pass(3 * time.Second)
				s.want(tt.last, nil)
				s.end()
			})
		})
	}
}
