package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/debugpage"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// scene is a service in which something of everything is the matter: a channel to real
// servers, pod-a and so on, whose health is checked.
type scene struct {
	*env
	nodes   []*leastconntest.Node
	proxy   *leastconntest.Proxy // before the last one: it accepts, and nothing comes through
	streams []*leastconntest.Stream
}

const sceneConfig = `{"loadBalancingConfig":[{"least_conn":{"resourceKey":%q,"slowStart":{"window":"20s"},"maxInflight":12,"failurePenalty":"30s",` +
	`"rebalance":{"drainWithin":"0s"}}}],"healthCheckConfig":{"serviceName":""}}`

// newScene has pods a to e be ready; f has no server, g is not healthy, h is silent.
func newScene(t *testing.T, key string) *scene {
	s := &scene{nodes: startNodes(t, "a", "b", "c", "d", "e", "f", "g", "h")}
	s.nodes[1].SetStreamLimit(9) // one is of the health check
	s.nodes[5].Stop()
	s.nodes[6].SetServing(false)
	var err error
	s.proxy, err = leastconntest.StartProxy(s.nodes[7].Addr())
	require.NoError(t, err)
	t.Cleanup(s.proxy.Close)
	s.proxy.Blackhole(true)
	cfg := leastconntest.ChannelConfig{ServiceConfig: fmt.Sprintf(sceneConfig, key), DialOptions: []grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: time.Minute, Multiplier: 1, MaxDelay: time.Minute}, MinConnectTimeout: time.Minute}),
	}}
	s.env = dial(t, cfg)
	s.key = key
	s.lists("abcdfgh")
	wait(t, "the pods are as they are to be", func() bool {
		return s.state("a") == "READY" && s.state("b") == "READY" && s.state("c") == "READY" && s.state("d") == "READY" &&
			s.state("f") == "TRANSIENT_FAILURE" && s.state("g") == "TRANSIENT_FAILURE" && s.state("h") == "CONNECTING"
	})
	return s
}

// lists has the resolver list pods. Those in capitals drain; a has a cap.
func (s *scene) lists(pods string) {
	s.Helper()
	var all []resolver.Endpoint
	for _, pod := range pods {
		name := strings.ToLower(string(pod))
		node := s.nodes[name[0]-'a']
		ep := node.Endpoint()
		switch {
		case node == s.nodes[7]:
			ep = s.proxy.Endpoint()
		case name == "a":
			ep = lcresolver.SetMaxInFlight(ep, 12)
		}
		if name != string(pod) {
			ep = lcresolver.SetWeight(ep, 0)
		}
		all = append(all, lcresolver.SetID(ep, "pod-"+name))
	}
	require.NoError(s, s.channel.Update(all...))
}

// state is that of the channel's connection to a pod; "" for none.
func (s *scene) state(pod string) string {
	for _, n := range s.snapshot().Endpoints {
		if n.ID == "pod-"+pod && len(n.Members) > 0 {
			return n.Members[0].Connectivity.State
		}
	}
	return ""
}

// open opens streams until so many are.
func (s *scene) open(n int) {
	s.Helper()
	for len(s.streams) < n {
		stream, err := leastconntest.Open(s.ctx, s.conn)
		require.NoError(s, err)
		s.streams = append(s.streams, stream)
	}
}

// end ends the oldest streams but for so many.
func (s *scene) end(left int) {
	s.Helper()
	n := max(0, len(s.streams)-left)
	require.NoError(s, leastconntest.EndAll(s.streams[:n]))
	s.streams = slices.Clone(s.streams[n:])
}

// happens plays what happens to the service, in so many steps of a length of each chapter.
func (s *scene) happens(steps int, pause time.Duration) {
	s.Helper()
	wave := func() {
		for i := range steps {
			n := 14 + 10*(i%6)/2
			s.open(n)
			time.Sleep(pause)
			s.end(n - 4 + i%4)
		}
	}
	wave()
	s.nodes[2].GoAway() // its streams live on
	wave()
	s.lists("abcdefgh") // e joins
	wave()
	s.lists("abCdefgh") // c drains
	wave()
	s.lists("abCefgh") // d leaves
	s.open(len(s.streams) + 16)
}

// Of real servers the page says in gRPC's words why they do not serve.
func TestPageSaysWhyServersDoNotServe(t *testing.T) {
	s := newScene(t, t.Name())
	w := httptest.NewRecorder()
	debugpage.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?format=text&key="+t.Name(), nil))
	text := w.Body.String()
	for _, want := range []string{
		`WHY pod-f: "no connection for \d+s: connection error: desc = \\"transport: Error while dialing: dial tcp 127.0.0.1:\d+: connect: connection refused\\" \(\d+s ago\)"`,
		`WHY pod-g: not healthy for \d+s: health check: connection active but health check failed. status=NOT_SERVING \(\d+s ago\)`,
		`WHY pod-h: connecting for \d+s`,
		`WARNING leastconntest:///channel-\d+: "configuration: unknown field \\"maxInflight\\" is ignored`,
		`CONFIGURATION leastconntest:///channel-\d+: {"resourceKey":"TestPageSaysWhyServersDoNotServe","priorityFailover":"10s",.*"ignoredFields":\["maxInflight"\]}`,
	} {
		require.Regexp(t, want, text)
	}
	require.Equal(t, 3, strings.Count(text, "WHY"))
	require.Equal(t, "CONNECTING", s.state("h"))
}
