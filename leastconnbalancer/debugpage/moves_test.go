package debugpage_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// begin opens an RPC of a session.
func (s *service) begin(t *testing.T, session *state.Session) (state.Lease, <-chan struct{}) {
	ctx, moved := session.Next(t.Context())
	l, _, outcome := s.AcquireOrQueue(ctx, nil, s.view)
	require.Equal(t, state.Chosen, outcome)
	s.leases = append(s.leases, l)
	return l, moved
}

// Streams that move are shown where they leave, where they arrive and on their channel,
// until they have moved.
func TestMovesUnderWay(t *testing.T) {
	e := newEnv(t)
	text := func() string { return strings.Join(strings.Fields(e.get("?key="+t.Name())), " ") }
	page := func() string { return e.do(http.MethodGet, "/?key="+t.Name(), browser).body }
	s := serve(t, t.Name(), "dns:///api", at("a", "b")...)
	s.SetRebalance(state.Rebalance{PerSecond: 1})
	s.view.Set(s.members[1], 0, nil)
	var sessions [3]state.Session
	var first [3]state.Lease
	var moved [3]<-chan struct{}
	for i := range sessions {
		first[i], moved[i] = s.begin(t, &sessions[i])
	}
	require.NotRegexp(t, "moving|leaving|arriving", text()+page())

	s.view.Set(s.members[1], 1, nil)
	s.view.Set(s.members[0], 0, nil)
	for i := range sessions {
		<-moved[i]
	}
	first[0].Release()
	s.begin(t, &sessions[0])
	got := text()
	require.Contains(t, got, `"TestMovesUnderWay": 5 in flight, 0 waiting, 2 moving, spread 0;`)
	require.Contains(t, got, "connected leaving arriving a draining 2 ")
	require.Regexp(t, `b ready 3 0 1 - - 0 \S+ 3 3 \S+ 0 \d+s - 0 2 WHY a: draining for \d+s`, got)
	require.Regexp(t, `moving dns:///api( \d+){6} 2$`, got)
	require.Regexp(t, `a draining( \S+){7} 3 3 - 0 \d+s - 2 0 b`, got)
	html := page()
	require.Contains(t, html, `<dt>moving</dt><dd>2</dd>`)
	require.Contains(t, html, ` <b class="badge">leaving 2</b>`)
	require.Contains(t, html, ` <b class="badge">arriving 2</b>`)
	require.Contains(t, html, `dns:///api <b class="badge">moving 2</b></th>`)

	for i := range sessions {
		first[i].Release()
		if i > 0 {
			s.begin(t, &sessions[i])
		}
	}
	require.NotRegexp(t, "moving|leaving|arriving", text()+page())
	require.NoError(t, s.Ledger().Check())
}
