package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

func TestLeastConnIsExactInEveryScenario(t *testing.T) {
	var out bytes.Buffer
	status, err := run(t.Context(), []string{"-policy", "least_conn"}, &out)
	require.NoError(t, err)
	assert.Equal(t, exitExact, status, out.String())
	n := len(table())
	assert.Contains(t, out.String(), fmt.Sprintf("\nleast_conn: exact in %d of %d scenarios\n", n, n))
}

// Judged by the rule for least_conn, other policies are off, and the run fails.
func TestOtherPoliciesAreOffByThisRule(t *testing.T) {
	judged := []trial.Policy{trial.Policies()[0], trial.Policies()[2]} // 2 choices might be right by chance
	for i := range judged {
		judged[i].Judged = true
	}
	rows, err := selectRows("^(second channel|ageing|keys apart)$")
	require.NoError(t, err)
	r := play(t.Context(), judged, rows)
	assert.Equal(t, exitOff, r.status())
	for p, policy := range judged {
		assert.False(t, r.cells[0][p].right(), "%s, ageing", policy.ID())
		assert.False(t, r.cells[1][p].right(), "%s, second channel", policy.ID())
	}
	assert.True(t, r.cells[2][0].right(), "with keys apart, each channel of round_robin has servers that are equal")
	verdict := r.verdict()
	assert.Contains(t, strings.Join(verdict, "\n"), "OFF round_robin, second channel: session ")
	assert.Contains(t, verdict, "OFF round_robin, ageing: servers held [9 3] after, exact gives [6 6]")
	assert.Contains(t, verdict, "round_robin: exact in 1 of 3 scenarios")
}

func TestJSONOfARun(t *testing.T) {
	var out bytes.Buffer
	status, err := run(t.Context(), []string{"-json", "-run", "scale-out|NOT_SERVING", "-policy", "least_conn"}, &out)
	require.NoError(t, err)
	assert.Equal(t, exitExact, status)
	var got struct {
		Status    string
		Scenarios []struct {
			Name    string
			Exact   map[string]any
			Results []struct{ Gave map[string]any }
		}
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	assert.Equal(t, "exact", got.Status)
	require.Len(t, got.Scenarios, 2)
	for _, s := range got.Scenarios {
		assert.Equal(t, s.Exact, s.Results[0].Gave, s.Name)
	}
}

func TestInterruptedRunFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	status, err := run(ctx, []string{"-run", "scale-out"}, &out)
	require.NoError(t, err)
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, out.String(), "FAILED least_conn, scale-out: ")
}

func TestFlags(t *testing.T) {
	for _, c := range []struct{ flag, value, want string }{
		{"-policy", "least_con", `-policy is "least_con", want one of round_robin, least_request_experimental, least_request_experimental/2, least_request_experimental/10, least_conn`},
		{"-run", "(", `-run is "(", want a regular expression`},
		{"-run", "no such", `-run is "no such", which no scenario's name matches`},
		{"-json", "surplus", `unexpected argument "surplus"`},
	} {
		status, err := run(t.Context(), []string{c.flag, c.value}, &bytes.Buffer{})
		assert.Equal(t, exitFailed, status, c)
		assert.ErrorContains(t, err, c.want)
	}
}

func TestPolicySelection(t *testing.T) {
	for name, want := range map[string]int{
		"": 4, "round_robin": 1, "least_request_experimental": 2, "least_request_experimental/10": 1, "least_conn": 1,
	} {
		policies, err := selectPolicies(name)
		require.NoError(t, err)
		assert.Len(t, policies, want, name)
	}
}
