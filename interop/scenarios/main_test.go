package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
	"github.com/leastconn/grpc-leastconn/interop/scenarios/rows"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

// Judged by the rule for least_conn, other policies are off, and the run fails.
func TestOtherPoliciesAreOffByThisRule(t *testing.T) {
	t.Parallel()
	judged := []scenario.Policy{scenario.Policies()[0], scenario.Policies()[2]} // 2 choices might be right by chance
	for i := range judged {
		judged[i].Judged = true
	}
	table, err := selectRows(rows.All(), "^(second channel|ageing|keys apart)$")
	require.NoError(t, err)
	r := play(t.Context(), judged, table)
	assert.Equal(t, exitDeviates, r.status())
	for p, policy := range judged {
		assert.False(t, r.cells[0][p].Right(), "%s, ageing", policy.ID())
		assert.False(t, r.cells[1][p].Right(), "%s, second channel", policy.ID())
	}
	assert.True(t, r.cells[2][0].Right(), "with keys apart, each channel of round_robin has servers that are equal")
	verdict := r.verdict()
	assert.Contains(t, strings.Join(verdict, "\n"), "OFF round_robin, second channel: session ")
	assert.Contains(t, verdict, "OFF round_robin, ageing: servers held [9 3] after, exact gives [6 6]")
	assert.Contains(t, verdict, "round_robin: exact in 1 of 3 scenarios")
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-run scale-out -policy least_conn":          "\nscale-out  2/2/0 → 3/3/3 (0)  3/3/3 (0) ✓\n",
		"-picture -run one -policy least_conn":       "\n  b joins a, 4 more   new 0/4  ✓\n",
		"-json -run NOT_SERVING -policy least_conn":  `"status": "exact"`,
		"-run restart -policy round_robin":           "\nround_robin: exact in 0 of 1 scenarios\n",
		"-picture -run scale-out -policy least_conn": "\nleast_conn: exact in 1 of 1 scenarios\n",
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, exitExact, run(t.Context(), strings.Fields(args), &out, &errs), args)
		assert.Contains(t, out.String(), want, args)
		assert.Empty(t, errs.String(), args)
		assert.Equal(t, strings.Contains(args, "-json"), json.Valid(out.Bytes()), args)
	}
}

func TestInterruptedRunFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	assert.Equal(t, exitFailed, run(ctx, []string{"-run", "scale-out"}, &out, &out))
	assert.Contains(t, out.String(), "FAILED least_conn, scale-out: ")
}

func TestWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-policy least_con":         `-policy is "least_con", want one of round_robin, least_request_experimental, least_request_experimental/2, least_request_experimental/10, least_conn`,
		"-run (":                    `-run is "(", want a regular expression`,
		"-run none":                 `-run is "none", which no scenario's name matches`,
		"-json surplus":             `unexpected argument "surplus"`,
		"-every 1s":                 "-every is there, want it with -watch only",
		"-reports 1s":               "-reports is there, want it with -watch only",
		"-watch -reports 99ms":      `invalid value "99ms" for flag -reports: want 100ms to 1h0m0s`,
		"-watch -every 0s":          `invalid value "0s" for flag -every: want 1ms to 1h0m0s`,
		"-watch -for -1s":           `invalid value "-1s" for flag -for`,
		"-watch -json":              "-watch goes with none of -picture, -json",
		"-picture -json":            "nor -picture with -json",
		"-watch -target dns:///%zz": `-target is "dns:///%zz"`,
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, exitFailed, run(t.Context(), strings.Fields(args), &out, &errs), args)
		assert.Contains(t, errs.String(), want, args)
		assert.Empty(t, out.String(), args)
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
