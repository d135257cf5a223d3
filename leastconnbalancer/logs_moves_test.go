package leastconnbalancer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

func logMoves(e *env, phase func(string)) {
	ns := e.nodes("a", "b", "c")
	logLetters(ns)
	c := e.dialWith(leastconntest.ChannelConfig{
		Target:        "logs",
		ServiceConfig: selecting(`{"rebalance":{"perSecond":50,"minAge":"0s","drainWithin":"0s"}}`),
	}, ns[:2]...)
	s := &script{env: e, row: row{script: ""}, nodes: map[string]*leastconntest.Node{"a": ns[0], "b": ns[1], "c": ns[2]}}
	p := &player{script: s, channel: c}
	phase("open")
	p.openSessions("12", p.obedient)
	phase("join")
	require.NoError(e, c.UpdateNodes(ns...))
	p.level("a4 b4 c4")
	phase("leave")
	require.NoError(e, c.UpdateNodes(ns[:2]...))
	p.level("a6 b6")
	phase("end")
	s.sessions.end(e)
	require.NoError(e, c.Close())
}

// Each plan is a line, and no stream that it moves.
func TestLogsALineForEachPlan(t *testing.T) {
	got := logged(t, "moves", inDetail...)
	var plans []string // goroutines of their own say them: they may come late
	for phase, lines := range got {
		got[phase] = slices.DeleteFunc(lines, func(line string) bool {
			is := strings.Contains(line, "streams are to ")
			if is {
				plans = append(plans, line)
			}
			return is
		})
	}
	require.ElementsMatch(t, []string{
		`INFO about 4 streams are to move so that loads become level`,
		`INFO 4 streams are to leave c (departed)`,
	}, plans)
	require.Equal(t, []string{`INFO 3 endpoints: 1 joined ("c"), 0 left, 0 changed`}, got["join"])
	require.Len(t, got["leave"], 1, got)
	require.Empty(t, append(got["open"], got["end"]...))
	for phase, lines := range logged(t, "moves", atInfo...) {
		require.Empty(t, lines, phase)
	}
}
