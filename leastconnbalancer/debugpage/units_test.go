package debugpage_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// What is in flight costs shows where that is not one unit each.
func TestTextShowsUnits(t *testing.T) {
	s := newEnv(t)
	sv := serve(t, t.Name(), "dns:///api", at("a", "b")...)
	call := func(ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		t.Cleanup(cancel)
		l, _, outcome := sv.AcquireOrQueue(ctx, nil, sv.view)
		require.Equal(t, state.Chosen, outcome)
		sv.leases = append(sv.leases, l)
	}
	call(t.Context())
	require.NotContains(t, s.get("?key="+t.Name()), "units")
	call(state.WithCost(t.Context(), 5012))
	require.Regexp(t, `units *\n(.*\n)*.* 5012 *\n`, s.get("?key="+t.Name()))
}
