package debugpage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// Services of 10,000 endpoints make small pages, and all of them can be had.
func TestManyEndpoints(t *testing.T) {
	s := newEnv(t)
	const n = 10_000
	eps := make([]state.Identity, n)
	for i := range eps {
		eps[i] = state.Identity{ID: fmt.Sprintf("pod-%05d", i), Addrs: []string{fmt.Sprintf("10.1.%d.%d:50051", i/256, i%256)}}
	}
	sv := serve(t, t.Name(), "dns:///api", eps...)
	for range n + n/2 {
		l, _, _ := sv.view.Acquire()
		sv.leases = append(sv.leases, l)
	}
	for _, tt := range []struct {
		query       string
		rows, limit int
	}{
		{"format=html", 100, 100 << 10},
		{"format=html&q=pod-00", 100, 100 << 10},
		{"format=html&q=pod-0001", 10, 20 << 10},
		{"format=html&top=10000", n, 8 << 20},
		{"format=text", 100, 20 << 10},
		{"format=text&top=10000", n, 2 << 20},
		{"format=json", n, 8 << 20},
	} {
		a := s.do(http.MethodGet, "/?key="+t.Name()+"&"+tt.query, "")
		require.Equal(t, http.StatusOK, a.StatusCode)
		require.Less(t, len(a.body), tt.limit, tt.query)
		require.Equal(t, tt.rows, strings.Count(a.body, "pod-")-strings.Count(a.body, "q=pod-")-strings.Count(a.body, `value="pod-`), tt.query)
		t.Logf("%s: %d KiB", tt.query, len(a.body)>>10)
	}
}
