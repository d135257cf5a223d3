package rows

import (
	"context"
	"time"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// startupSessions is how many sessions open at once, over one server less than there are.
const startupSessions = 12

// startupRow is a client that opens its sessions before it is connected.
func startupRow() Row {
	exact := counts{byServer: map[string]int{"near": startupSessions / 2, "far": startupSessions / 2}}
	return Row{
		Name: "opens before connected", Change: "12 open right after dial: near is 2 ms away, far 20 ms, a third one never answers",
		Measure: "sessions by server, and those that hang", Want: exact.String(), Exact: exact,
		Play: onNodes(func(ctx context.Context, e *env) (Figures, []string, error) {
			proxies, err := proxiesOf(e.nodes)
			defer func() {
				for _, p := range proxies {
					p.Close()
				}
			}()
			if err != nil {
				return nil, nil, err
			}
			proxies[0].SetDelay(20 * time.Millisecond)
			proxies[1].SetDelay(2 * time.Millisecond)
			proxies[2].Blackhole(true)
			if err := e.Update(proxies[0].Endpoint(), proxies[1].Endpoint(), proxies[2].Endpoint()); err != nil {
				return nil, nil, err
			}
			got, err := openAll(ctx, e.Channel, startupSessions)
			return got, got.differs(exact), err
		}, longStartup, leastconntest.Options{Name: "far"}, leastconntest.Options{Name: "near"}, leastconntest.Options{Name: "silent"}),
	}
}

// proxiesOf puts a proxy before each node.
func proxiesOf(nodes []*leastconntest.Node) (proxies []*leastconntest.Proxy, err error) {
	for _, n := range nodes {
		p, err := leastconntest.StartProxy(n.Addr())
		if err != nil {
			return proxies, err
		}
		proxies = append(proxies, p)
	}
	return proxies, nil
}

// longStartup is least_conn's configuration with a wait that a busy machine keeps, too.
func longStartup(p scenario.Policy) string {
	if p.Name != leastconnbalancer.Name {
		return p.Config
	}
	return `{"startupWait":"1.5s"}`
}
