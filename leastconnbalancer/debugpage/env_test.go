package debugpage_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/debugpage"
	"github.com/leastconn/grpc-leastconn/state"
)

// env serves the page at "/".
type env struct {
	*testing.T
	*httptest.Server
}

func newEnv(t *testing.T) *env {
	s := &env{t, httptest.NewServer(debugpage.Handler())}
	t.Cleanup(s.Close)
	return s
}

// answer is a response that has been read.
type answer struct {
	*http.Response
	body string
}

// do asks for a path, as one who accepts what the header says.
func (s *env) do(method, path, accept string) answer {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.URL+path, nil)
	require.NoError(s, err)
	r.Header.Set("Accept", accept)
	resp, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(s, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s, err)
	return answer{resp, string(body)}
}

// get asks with a query and returns what there is.
func (s *env) get(query string) string {
	s.Helper()
	a := s.do(http.MethodGet, "/"+query, "*/*")
	require.Equal(s, http.StatusOK, a.StatusCode, a.body)
	return a.body
}

// document is the JSON form.
type document struct {
	Process struct {
		Name string
		PID  int
	}
	Services []state.Snapshot
}

func (s *env) json(query string) (d document) {
	s.Helper()
	require.NoError(s, json.Unmarshal([]byte(s.get("?format=json"+query)), &d))
	return d
}

// service is a ledger with a roster for a test.
type service struct {
	*state.EndpointSet
	view    *state.ReadySet
	members []*state.Member
	leases  []state.Lease
}

// serve lists endpoints of weight 1 under a resource key.
func serve(t *testing.T, key, name string, eps ...state.Identity) *service {
	t.Helper()
	r := state.Open(key).NewEndpointSet(name)
	s := &service{EndpointSet: r, view: r.NewReadySet(0), members: r.Update(nil, eps)}
	for _, m := range s.members {
		s.view.Set(m, 1, nil)
	}
	t.Cleanup(func() {
		for _, l := range s.leases {
			l.Release()
		}
		r.Close()
	})
	return s
}

// at is endpoints of one address each.
func at(addrs ...string) (eps []state.Identity) {
	for _, a := range addrs {
		eps = append(eps, state.Identity{Addrs: []string{a}})
	}
	return eps
}

// load puts n RPCs in flight on the member alone.
func (s *service) load(m *state.Member, n int) {
	v := s.NewReadySet(0)
	v.Set(m, 1, nil)
	for range n {
		l, _, _ := v.Acquire()
		s.leases = append(s.leases, l)
	}
	s.view.Set(m, 1, nil)
}
