package integration

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/interop/scenarios/rows"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// notBelowXDS is the rows that no control plane can play, with why.
var notBelowXDS = map[string]string{
	"moves: failover": "gRPC's priority policy does not tell the policy below it, which has the sessions, that a preferred " +
		"priority is back; it closes it 15 minutes later, and they are told then",
}

// Each row of the table of scenarios gives below a control plane what it gives without: what exact
// least-connections gives.
func TestScenariosBelowXDS(t *testing.T) {
	t.Parallel()
	policy := rows.LeastConn(func(target string) (leastconntest.Source, error) {
		p := startControlPlane(t, target, nil)
		return &xdsSource{Builder: p.resolver(), plane: p, serving: map[string]bool{}}, nil
	})
	var table []rows.Row
	for _, r := range rows.All() {
		if notBelowXDS[r.Name] == "" {
			table = append(table, r)
		}
	}
	require.Len(t, table, len(rows.All())-len(notBelowXDS), "a row in notBelowXDS is none")
	cells := make([]rows.Cell, len(table))
	play := func(i int) { cells[i] = table[i].Play(t.Context(), policy) }
	var beside sync.WaitGroup
	for i, r := range table {
		if r.Waits {
			beside.Go(func() { play(i) })
		}
	}
	for i, r := range table {
		if !r.Waits {
			play(i)
		}
	}
	beside.Wait()
	for i, r := range table {
		t.Run(r.Name, func(t *testing.T) {
			require.NoError(t, cells[i].Err)
			assert.Empty(t, cells[i].Deviations)
			if !r.Bounded {
				assert.Equal(t, r.Exact, cells[i].Got)
			}
		})
	}
}
