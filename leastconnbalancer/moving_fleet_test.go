package leastconnbalancer_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Many processes with a few streams each: each of them is level by itself, and a node
// that joins gets its part of all streams by chance. Channels with ledgers of their own
// stand for processes.
func TestFleetsGiveNewNodesTheirPart(t *testing.T) {
	t.Run("one stream each", func(t *testing.T) {
		got := fleet(t, 200, 1)
		requireNear(t, 200, 1./4, got[3])
	})
	t.Run("three streams each", func(t *testing.T) {
		got := fleet(t, 100, 3)
		requireNear(t, 100, 3./4, got[3])
		for _, old := range got[:3] {
			requireNear(t, 100, 3./4, old)
		}
	})
}

// requireNear allows 5.5 standard deviations of so many draws: more come once in 10 million
// times. How even fleets are is tested with package state, where processes cost less.
func requireNear(t *testing.T, draws int, chance float64, got int) {
	t.Helper()
	n := float64(draws)
	require.InDelta(t, n*chance, got, 5.5*math.Sqrt(n*chance*(1-chance)))
}

// fleet has a fourth node join three, and returns what the nodes have in the end.
func fleet(t *testing.T, processes, each int) []int {
	e := parallelEnv(t)
	s := &script{env: e, row: row{script: ""}, nodes: map[string]*leastconntest.Node{}, players: map[string]*player{}, down: map[string]bool{}}
	s.sessions = newSessions(e.ctx)
	t.Cleanup(s.sessions.cancel)
	var eps []resolver.Endpoint
	for _, name := range []string{"a", "b", "c", "d"} {
		eps = append(eps, s.node(name).Endpoint())
	}
	var channels []*channel
	var opening sync.WaitGroup
	for i := range processes {
		c := e.unused(leastconntest.ChannelConfig{
			ServiceConfig: selecting(fmt.Sprintf(`{"resourceKey":"%s %d","rebalance":{"minAge":"0s"}}`, t.Name(), i)),
			Endpoints:     eps[:3],
		})
		c.key = fmt.Sprintf("%s %d", t.Name(), i)
		c.Connect()
		channels = append(channels, c)
	}
	for _, c := range channels {
		c.env.wait("a, b and c are ready", func() bool {
			ready := 0
			for _, ep := range c.snapshot().Endpoints {
				for _, m := range ep.Members {
					if m.Ready {
						ready++
					}
				}
			}
			return ready == 3
		})
		p := &player{script: s, channel: c}
		for range each {
			opening.Add(1)
			s.sessions.hold(p.obedient, opening.Done)
		}
	}
	opening.Wait()
	s.sessions.unbroken(e)
	for _, c := range channels {
		require.NoError(t, c.Update(eps...))
	}
	// All have drawn 15 s after the list: the loads settle for 5 s, and a draw comes within 10 s.
	d, drawn := s.nodes["d"], time.Now().Add(16*time.Second)
	for seen, since := -1, time.Now(); time.Since(since) < calm || time.Now().Before(drawn); time.Sleep(10 * time.Millisecond) {
		if n := d.HeldStreams(); n == 0 || n != seen {
			seen, since = n, time.Now()
		}
		require.NoError(t, e.ctx.Err())
	}
	live := s.live()
	s.sessions.end(e)
	return []int{live["a"], live["b"], live["c"], live["d"]}
}
