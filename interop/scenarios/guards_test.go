package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
)

// Judged by the rule for least_conn, a policy without guards is off in each of their rows.
func TestPoliciesWithoutGuardsAreOff(t *testing.T) {
	t.Parallel()
	judged := scenario.Policies()[:1]
	judged[0].Judged = true
	rows, err := selectRows(table(), "^(failing server|full server|cold newcomer|opens before connected|long prompts)$")
	require.NoError(t, err)
	r := play(t.Context(), judged, rows)
	assert.Equal(t, exitDeviates, r.status())
	for i, c := range r.cells {
		assert.NoError(t, c[0].err, rows[i].name)
		assert.False(t, c[0].right(), rows[i].name)
	}
	assert.Greater(t, r.cells[0][0].got.(failures).percent, 20.0)
	assert.Equal(t, counts{byServer: map[string]int{"a": 2, "b": 6}, hanging: 4}, r.cells[1][0].got)
	assert.Zero(t, r.cells[2][0].got.(counts).hanging)
	assert.Contains(t, []any{counts{byServer: map[string]int{"near": 12}}, counts{byServer: map[string]int{"far": 12}}}, r.cells[3][0].got, "all on the one that connects first")
}

// Without its guards, least_conn is off where they are asked for.
func TestGuardsAreWhatMakesTheDifference(t *testing.T) {
	t.Parallel()
	rows, err := selectRows(table(), "^(failing server|full server)$")
	require.NoError(t, err)
	bare := scenario.Policy{Name: "least_conn", Config: `{"failurePenalty":"0s","streamLimit":"ignore"}`, Judged: true}
	r := play(t.Context(), []scenario.Policy{bare}, rows)
	assert.Greater(t, r.cells[0][0].got.(failures).percent, 30.0, "a server that fails at once attracts the traffic")
	assert.Equal(t, counts{byServer: map[string]int{"a": 2, "b": 6}, hanging: 4}, r.cells[1][0].got, "half of them wait in a connection")
}

func TestFiguresOfGuards(t *testing.T) {
	got := counts{byServer: map[string]int{"b": 6, "a": 2}, hanging: 4}
	assert.Equal(t, "2/6, 4 hang", got.String())
	assert.Nil(t, got.differs(got))
	assert.Equal(t, []string{"servers hold 2/6, 4 hang, exact gives 2/10"}, got.differs(counts{byServer: map[string]int{"a": 2, "b": 10}}))
	js, err := got.MarshalJSON()
	require.NoError(t, err)
	assert.JSONEq(t, `{"sessions":{"a":2,"b":6},"hanging":4}`, string(js))
	js, err = failures{12.5}.MarshalJSON()
	require.NoError(t, err)
	assert.JSONEq(t, `{"failedPercent":12.5}`, string(js))
	assert.Equal(t, "12 % fail", failures{12.4}.String())
}
