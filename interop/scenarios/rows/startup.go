package rows

import (
	"context"
	"sync"
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
		Name: "opens before connected", Change: "12 open right after dial: near answers first, far later, a third one never",
		Measure: "sessions by server, and those that hang", Want: exact.String(), Exact: exact, Waits: true,
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
			proxies[0].Blackhole(true)
			proxies[2].Blackhole(true)
			if err := e.Update(proxies[0].Endpoint(), proxies[1].Endpoint(), proxies[2].Endpoint()); err != nil {
				return nil, nil, err
			}
			var answering sync.WaitGroup
			defer answering.Wait()
			opening, opened := context.WithCancel(ctx)
			defer opened()
			answering.Go(func() {
				takenByNear(opening, e.nodes[1])
				proxies[0].Blackhole(false)
			})
			got, err := openAll(ctx, e.Channel, startupSessions, stuckAtStart)
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

// takenByNear waits until near has what a policy gives it while it is the only one that is ready: sessions, and no more of
// them for some looks.
func takenByNear(ctx context.Context, near *leastconntest.Node) {
	held, looks := 0, 0
	_ = leastconntest.WaitFor(ctx, "sessions on near", func() bool {
		now := near.HeldStreams()
		if looks++; now != held {
			held, looks = now, 0
		}
		return held > 0 && looks >= nearRests
	})
}

// nearRests is how many looks, a millisecond apart, near's sessions must stay as they are.
const nearRests = 50

// longStartup is least_conn's configuration with a wait that a busy machine keeps, too. stuckAtStart is longer.
func longStartup(p scenario.Policy) string {
	if p.Name != leastconnbalancer.Name {
		return p.Config
	}
	return `{"startupWait":"10s"}`
}

const stuckAtStart = 20 * time.Second
