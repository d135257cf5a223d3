package debugpage_test

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// grantOne has an RPC be given room that it does not take up.
func (s *service) grantOne(t *testing.T) {
	s.SetGuards(state.Guards{MaxQueued: 1})
	for _, m := range s.members {
		s.load(m, 1)
		m.SetMaxInFlight(1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	_, _, outcome := s.AcquireOrQueue(ctx, nil, s.view)
	require.Equal(t, state.Queued, outcome)
	s.members[0].SetMaxInFlight(2)
}

// reserve has RPCs wait for an endpoint of another channel that connects.
func reserve(t *testing.T, key, name string) {
	s := serve(t, key, name, at("ready", "connects")...)
	s.view.Remove(s.members[1])
	s.view.SetConnecting(s.members[1], 2, time.Now().Add(time.Hour))
	for _, want := range []state.Outcome{state.Chosen, state.Reserved, state.Reserved} {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		l, _, outcome := s.AcquireOrQueue(ctx, nil, s.view)
		require.Equal(t, want, outcome)
		s.leases = append(s.leases, l)
	}
}

// What is in flight and runs on no endpoint yet is told apart, where there is some.
func TestRPCsThatDoNotRunYet(t *testing.T) {
	s := newEnv(t)
	text := func() string {
		all := regexp.MustCompile(` +`).ReplaceAllString(s.get("?key="+t.Name()), " ")
		all = regexp.MustCompile(` \d+s\b`).ReplaceAllString(all, " AGE")
		_, all, _ = strings.Cut(all, "\n\n")
		return all
	}
	page := func() string { return s.do(http.MethodGet, "/?key="+t.Name(), browser).body }
	sv := serve(t, t.Name(), "dns:///api", at("a", "b")...)
	require.NotRegexp(t, "granted|reserved", text()+page())

	sv.grantOne(t)
	require.Equal(t, `"TestRPCsThatDoNotRunYet": 3 in flight, 0 waiting, 1 granted, spread 0; endpoints: 2 ready

endpoint state in flight penalty weight cap ramp priority oldest picks highest score failures in state connected granted 
a ready 2 0 1 2 - 0 AGE 2 2 - 0 AGE - 1 
b ready 1 0 1 1 - 0 AGE 1 1 - 0 AGE - 0 

channel picks waiting had to wait retried elsewhere penalties double releases granted 
dns:///api 2 0 1 0 0 0 1 
`, text())

	reserve(t, t.Name(), "dns:///others")
	require.Equal(t, `"TestRPCsThatDoNotRunYet": 6 in flight, 0 waiting, 1 granted, 2 reserved, spread 0; endpoints: 3 ready, 1 not ready

endpoint state in flight penalty weight cap ramp priority oldest picks highest score failures in state connected granted reserved 
a ready 2 0 1 2 - 0 AGE 2 2 - 0 AGE - 1 0 
b ready 1 0 1 1 - 0 AGE 1 1 - 0 AGE - 0 0 
connects not_ready 2 0 - - - - AGE 2 2 - 0 AGE - 0 2 
ready ready 1 0 1 - - 0 AGE 1 1 2.00 0 AGE - 0 0 
WHY connects: not ready for AGE

channel picks waiting had to wait retried elsewhere penalties double releases granted reserved 
dns:///api 2 0 1 0 0 0 1 0 
dns:///others 1 0 0 0 0 0 0 2 
`, text())
	html := page()
	require.Contains(t, html, `<dt>granted</dt><dd>1</dd>`)
	require.Contains(t, html, `<dt>reserved</dt><dd>2</dd>`)
	got := rows(html)
	require.Contains(t, got[0], `full</b> <b class="badge">granted 1</b></span></th>`)
	require.NotContains(t, got[1], "granted")
	require.Regexp(t, `not ready</b> <b class="badge">reserved 2</b></span><div class="reasons"><p class="why">not ready for \d+s</p></div></th>`, got[2])
	require.NotRegexp(t, "granted|reserved", got[3])
	require.Contains(t, html, `dns:///api <b class="badge">granted 1</b></th>`)
	require.Contains(t, html, `dns:///others <b class="badge">reserved 2</b></th>`)
	require.NoError(t, sv.Ledger().Check())
}
