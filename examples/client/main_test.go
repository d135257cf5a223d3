package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

// Judged by the rule for least_conn, round_robin fails where its rotation does not happen to level the load.
func TestCompareFindsMisplacedSessions(t *testing.T) {
	site, err := ownSite()
	require.NoError(t, err)
	defer site.close()
	judged := trial.Policies()[0]
	judged.Judged = true
	r := compare(t.Context(), site, []trial.Policy{judged}, trial.Basics())

	assert.Equal(t, exitMisplaced, r.status(), r.render())
	for s, want := range map[int][]int{1: {6, 2}, 2: {6, 6}, 3: {9, 3}} {
		assert.NoError(t, r.cells[s][0].Err)
		assert.Equal(t, want, trial.Counts(r.cells[s][0].After), r.scenarios[s].Name)
	}
}

func TestLeastConnPlacesEverySession(t *testing.T) {
	var out bytes.Buffer
	status, err := run(t.Context(), nil, &out)
	require.NoError(t, err)
	assert.Equal(t, exitPlaced, status, out.String())
	assert.Contains(t, out.String(), "least_conn put 38 of 38 sessions")
}

func TestTargetServers(t *testing.T) {
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, "a", "b", "c")
	require.NoError(t, err)
	defer leastconntest.CloseNodes(nodes...)
	target := nodes[0].Addr() + ", " + nodes[1].Addr() + "," + nodes[2].Addr()

	site, err := openSite(t.Context(), target, 0)
	require.NoError(t, err)
	defer site.close()
	r := compare(t.Context(), site, trial.Policies()[:1], trial.Basics())
	assert.Equal(t, exitPlaced, r.status(), r.render())
	assert.Equal(t, []int{6, 2}, trial.Counts(r.cells[1][0].After))
	assert.True(t, r.cells[3][0].skipped, "nobody can age the connections of these servers")

	site, err = openSite(t.Context(), target, time.Second)
	require.NoError(t, err)
	assert.True(t, site.ages())

	_, err = openSite(t.Context(), nodes[0].Addr(), 0)
	assert.ErrorContains(t, err, "at least 3")
	_, err = openSite(t.Context(), nodes[0].Addr()+","+nodes[1].Addr()+","+nodes[0].Addr(), 0)
	assert.ErrorContains(t, err, `both named "a"`)
	nodes[2].Stop()
	_, err = openSite(t.Context(), target, 0)
	assert.ErrorContains(t, err, nodes[2].Addr())
}
