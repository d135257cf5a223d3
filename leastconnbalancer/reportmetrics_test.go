package leastconnbalancer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
)

// tell has the server of an address say how many RPCs it has in flight.
func (c *fakeConn) tell(addr string, inFlight int64) {
	c.tb.Helper()
	told := 0
	for _, sc := range c.open(addr) {
		for _, p := range sc.producers {
			p.report(inFlight, 1)
			told++
		}
	}
	require.Equal(c.tb, 1, told)
}

// What servers report is shown beside what the process counts, while it is used.
func TestMetricsOfReports(t *testing.T) {
	inRecordedTime(t, func(t *testing.T, c *fakeConn, r *countRecorder) {
		c.list(everySecond, "abc")
		c.connect("abc")
		passes(time.Second)
		shown := func(name string) map[string]int { return r.by(name, endpointLabel) }
		require.Equal(t, map[string]int{"": 0}, shown("others_in_flight"))
		require.Empty(t, shown("report_age"))
		require.Equal(t, map[string]int{"": 0}, shown("silent_endpoints"))

		for range 3 {
			_, done := c.pick()
			defer done(balancer.DoneInfo{})
		}
		c.tell("a", 11)
		passes(time.Second)
		c.tell("b", 4)
		require.Equal(t, map[string]int{"": 13, "a": 10, "b": 3}, shown("others_in_flight"))
		require.Equal(t, map[string]int{"": 1, "a": 1, "b": 0}, shown("report_age"))
		require.Equal(t, 7, r.value("fleet_imbalance"))
		require.Equal(t, 0, r.value("imbalance"))

		passes(2500 * time.Millisecond)
		require.Equal(t, map[string]int{"": 3, "b": 3}, shown("others_in_flight"))
		require.Equal(t, map[string]int{"": 3, "a": 3, "b": 2}, shown("report_age"))
		require.Equal(t, 2, r.value("silent_endpoints"))
		require.Equal(t, 0, r.value("fleet_imbalance"))

		c.list(`{}`, "abc")
		for _, name := range []string{"others_in_flight", "report_age", "silent_endpoints", "fleet_imbalance"} {
			require.Empty(t, shown(name), name)
		}
		require.NotEmpty(t, shown("in_flight"))
	})
}
