package integration

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer/orcaload"
)

// reporting lets the policy choose by what servers report.
const reporting = `{"loadBalancingConfig":[{"least_conn":{"failurePenalty":"0s","reports":{"interval":"100ms"}}}]}`

// With reports the panels show what the servers handle for all clients.
func TestDashboardOfReports(t *testing.T) {
	m := newTelemetry(t, endpointLabel)
	ns := []*leastconntest.Node{startReportingNode(t, "a"), startReportingNode(t, "b"), startNodes(t, "silent")[0]}
	others := dialReady(t, all(ns...)...)
	others.hold(3, map[string]int{"a": 1, "b": 1, "silent": 1})
	others.list(server(ns[0]))
	others.hold(4, map[string]int{"a": 4})

	e := m.dial(leastconntest.ChannelConfig{Target: "reports", ServiceConfig: reporting}, ns...)
	e.waitReady(all(ns...)...)
	instance, target := strings.TrimPrefix(m.page.URL, "http://"), e.conn.CanonicalTarget()
	p := startPrometheus(t, instance)
	queries := dashboard(t).queries(t, pattern(instance), pattern(target))
	p.until("the panels show the fleet", func(now *assert.CollectT) {
		p.answers(now, map[string]float64{ns[0].Addr(): 5, ns[1].Addr(): 1}, "grpc_lb_least_conn_endpoint", queries["Load of the fleet by endpoint A"])
		for panel, value := range map[string]float64{"Spread of the fleet A": 4, "Spread of the fleet B": 0, "Silent endpoints A": 1} {
			p.answers(now, map[string]float64{target: value}, "grpc_target", queries[panel])
		}
		ages := p.by(now, "grpc_lb_least_conn_endpoint", queries["Age of reports A"])
		assert.Contains(now, ages, ns[0].Addr())
		assert.Contains(now, ages, ns[1].Addr())
		assert.NotContains(now, ages, ns[2].Addr())
	})
	d := dashboard(t)
	require.Len(t, slices.DeleteFunc(d.Panels, func(p panel) bool { return !reportPanels.MatchString(p.Title + " A") }), 4)
}
