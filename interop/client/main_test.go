package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) {
	if isChild() {
		os.Exit(runChild(context.Background(), os.Stdin, os.Stdout, os.Stderr, slices.Concat(standard, broken)))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=10") // of the children; the default is a second
	statetest.Main(m)
}

// outcome is what a run of the client came to.
type outcome struct {
	status    int
	out, errs string
}

// client runs the client, whose children are this binary's.
func client(ctx context.Context, args ...string) outcome {
	var out, errs bytes.Buffer
	status := run(ctx, append([]string{
		// Cases are not here to measure the machine.
		"--soak_per_iteration_max_acceptable_latency_ms", "60000", "--soak_overall_timeout_seconds", "60", "--case_timeout_seconds", "60",
	}, args...), &out, &errs, slices.Concat(standard, broken))
	return outcome{status, out.String(), errs.String()}
}

// all are the standard cases as a value of --test_case.
func all() string { return strings.ReplaceAll(names(standard), " ", "") }

// requireAllPassed requires that each standard case passed and that n servers were used.
func (o outcome) requireAllPassed(t *testing.T, n int) {
	t.Helper()
	require.Equal(t, exitPassed, o.status, "%s%s", o.out, o.errs)
	require.Empty(t, o.errs)
	for _, c := range standard {
		require.Regexp(t, `(?m)^pass  `+c.name+` +[0-9]+ sent`, o.out)
	}
	used := strings.Repeat(" [1-9][0-9]*", n)
	require.Regexp(t, fmt.Sprintf("(?m)^%d of %[1]d cases passed over least_conn, all counts 0 after each; RPCs by server:%s$", len(standard), used), o.out)
}

// requireFailed requires that one case was run and failed with these texts.
func (o outcome) requireFailed(t *testing.T, name string, texts ...string) {
	t.Helper()
	require.Equal(t, exitFailed, o.status, "%s%s", o.out, o.errs)
	require.Equal(t, "client: 1 of 1 cases failed: "+name+"\n", o.errs, o.out)
	require.Contains(t, o.out, "\nFAIL  "+name+"\n")
	for _, text := range texts {
		require.Contains(t, o.out, text)
	}
}
