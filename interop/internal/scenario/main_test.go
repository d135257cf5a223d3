package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

// start starts a host for each slot.
func start(t *testing.T, slots string) []*Host {
	t.Helper()
	var names []string
	for _, slot := range slots {
		names = append(names, string(slot))
	}
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, names...)
	require.NoError(t, err)
	t.Cleanup(func() { leastconntest.CloseNodes(nodes...) })
	return nodes
}

// exact is least_conn.
func exact() Policy {
	policies := Policies()
	return policies[len(policies)-1]
}

// everyPolicy plays something with each policy, on hosts of its own.
func everyPolicy(t *testing.T, slots string, play func(*testing.T, *Run)) {
	t.Parallel()
	for _, p := range Policies() {
		t.Run(p.ID(), func(t *testing.T) {
			t.Parallel()
			o := Play(t.Context(), start(t, slots), p, Scenario{
				Name: t.Name(), Hosts: len(slots), Play: func(r *Run) { play(t, r) },
			})
			require.NoError(t, o.Err)
			require.Empty(t, o.Faults)
		})
	}
}
