package picker

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/state"
)

// intercepted picks a SubConn that the balancer intercepts.
type intercepted struct{ done func(balancer.DoneInfo) }

func (c intercepted) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{SubConn: Intercept(&endpointChild{name: "child's"}, &endpointChild{name: "gRPC's"}), Done: c.done}, nil
}

// A pick hands on what the SubConn is to gRPC. Its lease holds the connection until the
// first Done, which says whether that was of use.
func TestPickHoldsTheConnection(t *testing.T) {
	for name, done := range map[string]func(balancer.DoneInfo){"without": nil, "with": func(balancer.DoneInfo) {}} {
		for info, succeeds := range map[*balancer.DoneInfo]bool{&success: true, &failure: false, &notSent: false} {
			s := newEnv(t, "")
			m := s.readySets[0].EndpointSet().Update(nil, []state.Identity{{Addrs: []string{"a"}}})[0]
			s.members["a"] = m
			c := m.NewConnection()
			s.readySets[0].Set(m, 1, intercepted{done})
			_, first := s.rpc().pickConn(s)
			_, second := s.rpc().pickConn(s)
			first(*info)
			require.Equal(t, succeeds, c.Succeeded(), "%s a Done of the child, %v", name, *info)
			idle := make(chan struct{})
			require.False(t, c.Close(func() { close(idle) }))
			first(*info)
			select {
			case <-idle:
				t.Fatal("an RPC has the connection")
			default:
			}
			second(*info)
			<-idle
		}
	}
}

// pickConn makes a pick whose SubConn must be gRPC's.
func (r rpc) pickConn(s *env) (string, func(balancer.DoneInfo)) {
	s.Helper()
	name, done := r.pick(s)
	require.Equal(s, "gRPC's", name)
	return name, done
}
