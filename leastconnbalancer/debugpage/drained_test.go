package debugpage_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// All forms tell what Drain keeps RPCs from, whatever its weight, from what the resolver
// drains.
func TestPageShowsWhatIsDrained(t *testing.T) {
	s := newEnv(t)
	svc := serve(t, t.Name(), "dns:///api", at("drained", "lost", "weightless", "used")...)
	svc.view.Remove(svc.members[1])
	svc.view.Set(svc.members[2], 0, nil)
	d := svc.Ledger().Drain("drained")
	svc.Ledger().Drain("lost")

	query := "?key=" + t.Name()
	text := s.get(query)
	require.Regexp(t, `(?m)^drained +draining, by Drain +0`, text)
	require.Regexp(t, `(?m)^lost +not_ready, by Drain +0`, text)
	require.Regexp(t, `(?m)^weightless +draining +0`, text)
	html := s.get(query + "&format=html")
	require.Regexp(t, `(?s)drained.{0,80}<b class="badge">draining</b>\s*<b class="badge">by Drain</b>`, html)
	require.NotRegexp(t, `(?s)weightless.{0,80}by Drain`, html)
	drained := map[string]bool{}
	for _, ep := range s.json("&key=" + t.Name()).Services[0].Endpoints {
		drained[ep.Address()] = ep.Drained
	}
	require.Equal(t, map[string]bool{"drained": true, "lost": true, "weightless": false, "used": false}, drained)

	d.End()
	require.Regexp(t, `(?m)^drained +ready +0`, s.get(query))
}
