package rows

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

func TestLeastConnIsExactInEveryRow(t *testing.T) {
	t.Parallel()
	for _, r := range append(All(), Short()...) {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			c := r.Play(t.Context(), LeastConn(nil))
			assert.NoError(t, c.Err)
			assert.Empty(t, c.Deviations)
			if !r.Bounded {
				assert.Equal(t, r.Exact, c.Got)
			}
		})
	}
}

// playNamed plays rows with a policy, one after another.
func playNamed(t *testing.T, p scenario.Policy, names ...string) []Cell {
	t.Helper()
	var cells []Cell
	for _, name := range names {
		i := slices.IndexFunc(All(), func(r Row) bool { return r.Name == name })
		require.GreaterOrEqual(t, i, 0, name)
		cells = append(cells, All()[i].Play(t.Context(), p))
		require.NoError(t, cells[len(cells)-1].Err, name)
	}
	return cells
}

// A policy without guards is off in each of their rows.
func TestPoliciesWithoutGuardsAreOff(t *testing.T) {
	t.Parallel()
	cells := playNamed(t, scenario.Policies()[0], "failing server", "full server", "cold newcomer", "opens before connected", "long prompts")
	for i, c := range cells {
		assert.False(t, c.Right(), i)
	}
	assert.Greater(t, cells[0].Got.(failures).percent, 20.0)
	assert.Equal(t, counts{byServer: map[string]int{"a": 2, "b": 6}, hanging: 4}, cells[1].Got)
	assert.Zero(t, cells[2].Got.(counts).hanging)
	assert.Contains(t, []any{counts{byServer: map[string]int{"near": 12}}, counts{byServer: map[string]int{"far": 12}}}, cells[3].Got, "all on the one that connects first")
}

// Without its guards, least_conn is off where they are asked for.
func TestGuardsAreWhatMakesTheDifference(t *testing.T) {
	t.Parallel()
	bare := scenario.Policy{Name: "least_conn", Config: `{"failurePenalty":"0s","streamLimit":"ignore"}`, Judged: true}
	cells := playNamed(t, bare, "failing server", "full server")
	assert.Greater(t, cells[0].Got.(failures).percent, 30.0, "a server that fails at once attracts the traffic")
	assert.Equal(t, counts{byServer: map[string]int{"a": 2, "b": 6}, hanging: 4}, cells[1].Got, "half of them wait in a connection")
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
