package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const retrying = `{"loadBalancingConfig":[{"least_conn":{"failurePenalty":"0s"}}],"methodConfig":[{"name":[{}],"retryPolicy":
	{"maxAttempts":2,"initialBackoff":"0.001s","maxBackoff":"0.001s","backoffMultiplier":1,"retryableStatusCodes":["UNAVAILABLE"]}}]}`

// A proxy whose node is gone answers with an HTTP status of its own, which gRPC
// makes UNAVAILABLE. The proxy's endpoint is connected all the while and gets
// its turn; no count stays. A retry goes elsewhere.
func TestProxyWithoutNode(t *testing.T) {
	eachProxy(t, func(t *testing.T, k proxyKind) {
		ns := startNodes(t, "near", "far")
		p := startProxy(t, k, settings{}, ns[1])
		m := dialMix(t, ns[0], p)
		ns[1].Stop()

		failed := 0
		for range 10 {
			if _, err := m.Unary(m.ctx); err != nil {
				failed++
				require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
				require.Regexp(t, "unexpected HTTP status code received from server: 50[23]", err.Error())
			}
			m.inFlight(0, 0)
		}
		require.Equal(t, 5, failed, "of 10 RPCs that take turns")

		require.NoError(t, m.UpdateConfig(retrying, endpointsOf(m.servers)...))
		for range 10 {
			name, err := m.Unary(m.ctx)
			require.NoError(t, err)
			require.Equal(t, "near", name)
			m.inFlight(0, 0)
		}
		streams := m.hold(4, map[string]int{"near": 4})
		m.counts(4, 0)

		require.NoError(t, ns[1].Restart())
		more := m.hold(4, map[string]int{"far": 4})
		m.counts(4, 4)
		m.endAll(streams, more)
		m.counts(0, 0)
	})
}

// HAProxy takes a server out of service: its streams live on and stay counted,
// new ones are refused with 503 and leave no count.
func TestHAProxyDisablesServer(t *testing.T) {
	ns := startNodes(t, "near", "far")
	p := startProxy(t, haproxy, settings{}, ns[1])
	m := dialMix(t, ns[0], p)
	streams := m.hold(4, map[string]int{"near": 2, "far": 2})

	p.command("disable server nodes/node0")
	refused := 0
	for range 6 {
		s, err := m.Open(m.ctx)
		if err == nil {
			require.Equal(t, "near", s.Node())
			require.NoError(t, s.End())
		} else {
			refused++
			require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
			require.ErrorContains(t, err, "503")
		}
		m.inFlight(2, 2)
	}
	require.Equal(t, 3, refused, "of 6 streams that take turns")
	m.alive(streams)
	m.counts(2, 2)

	p.command("enable server nodes/node0")
	more := m.hold(4, map[string]int{"near": 2, "far": 2})
	m.endAll(streams, more)
	m.counts(0, 0)
}
