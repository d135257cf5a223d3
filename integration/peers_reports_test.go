package integration

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	v3orcaservice "github.com/cncf/xds/go/xds/service/orca/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// reported follows a server's reports as any ORCA client does, and keeps the last one.
type reported struct {
	mu   sync.Mutex
	last *v3orcapb.OrcaLoadReport
}

// follow listens until stop.
func follow(t *testing.T, e *env, interval time.Duration) (r *reported, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := v3orcaservice.NewOpenRcaServiceClient(e.conn).
		StreamCoreMetrics(ctx, &v3orcaservice.OrcaLoadReportRequest{ReportInterval: durationpb.New(interval)})
	require.NoError(t, err)
	r = &reported{}
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			last, err := stream.Recv()
			if err != nil {
				return
			}
			r.mu.Lock()
			r.last = last
			r.mu.Unlock()
		}
	})
	stop = func() { cancel(); reading.Wait() }
	t.Cleanup(stop)
	return r, stop
}

// inFlight is what the last report has, -1 without one.
func (r *reported) inFlight() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, ok := r.last.GetNamedMetrics()["in_flight"]; ok {
		return n
	}
	if n, ok := r.last.GetUtilization()["in_flight_ppm"]; ok {
		return math.Round(n * 1e6)
	}
	return -1
}

func (r *reported) rps() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.GetRpsFractional()
}

// reportingLanguages are those whose servers report.
var reportingLanguages = append(slices.Clone(languages), java)

// Servers of other languages report what they have in flight, and how many RPCs begin.
func TestPeersReport(t *testing.T) {
	each(t, reportingLanguages, func(t *testing.T, k kind) {
		p := startPeer(t, k, reserveAddr(t))
		e := dialReady(t, p)
		r, stop := follow(t, e, 100*time.Millisecond)
		reports := func(n float64) { wait(t, fmt.Sprint(n, " are reported"), func() bool { return r.inFlight() == n }) }
		reports(0)
		held := e.hold(3, map[string]int{k.name: 3})
		reports(3)
		require.NoError(t, held[0].End())
		held[1].Cancel()
		reports(1)
		wait(t, "a rate is reported", func() bool {
			_, err := e.unary()
			require.NoError(t, err)
			return r.rps() > 0
		})
		held[2].Cancel()
		reports(0)
		wait(t, "no rate is reported", func() bool { return r.rps() == 0 })

		_, stopSlow := follow(t, e, time.Hour)
		reports(0)
		p.drain()
		stopSlow()
		stop()
		p.waitDrained()
	})
}

// slowReports are so far apart that a test can act between two of them.
const slowReports = 2 * time.Second

// A server that others load is avoided, once it says so; without reports it gets its half. Its reports do not keep it
// from ending.
func TestPeersThatOthersLoadAreAvoided(t *testing.T) {
	each(t, reportingLanguages, func(t *testing.T, k kind) {
		p, near := startPeer(t, k, reserveAddr(t)), startReportingNode(t, "near")
		others := dialReady(t, p).hold(20, map[string]int{k.name: 20})
		without := dialReady(t, near, p)
		require.NoError(t, leastconntest.EndAll(without.hold(10, map[string]int{k.name: 5, "near": 5})))
		wait(t, "these are over", func() bool { return near.Live() == 0 && p.Live() == 20 })

		config := fmt.Sprintf(`{"loadBalancingConfig":[{"least_conn":{"reports":{"interval":"%v"}}}]}`, slowReports)
		for try := 1; ; try++ {
			require.Less(t, try, 30, "reports come while streams open, again and again")
			e := dial(t, leastconntest.ChannelConfig{Target: fmt.Sprint(k.name, try), ServiceConfig: config}, near, p)
			e.waitReady(near, p)
			said := func() (byNear, byPeer state.ReportSnapshot) { return e.endpoint(near).Report(), e.endpoint(p).Report() }
			wait(t, "both report", func() bool { a, b := said(); return a.Told && b.Told })
			nearBefore, peerBefore := said()
			require.Equal(t, []int64{0, 20}, []int64{nearBefore.Others, peerBefore.Others})
			held, err := e.channel.OpenN(e.ctx, 10)
			require.NoError(t, err)
			nearAfter, peerAfter := said()
			if nearAfter.AgeSeconds >= nearBefore.AgeSeconds && peerAfter.AgeSeconds >= peerBefore.AgeSeconds && nearAfter.Told && peerAfter.Told {
				e.inFlight(10, 0)
				leastconntest.CancelAll(held)
				break
			}
			leastconntest.CancelAll(held) // the choice has changed with what was heard meanwhile
			e.channel.Close()
			wait(t, "its streams are over", func() bool { return near.Live() == 0 && p.Live() == 20 })
		}
		p.drain()
		leastconntest.CancelAll(others)
		p.waitDrained()
	})
}

// The document has the lines by which the servers here report.
func TestFleetDocHasTheLinesOfPeers(t *testing.T) {
	doc, err := os.ReadFile("../docs/fleet.md")
	require.NoError(t, err)
	for _, file := range []string{"python/load.py", "node/load.js"} {
		source, err := os.ReadFile("peers/" + file)
		require.NoError(t, err)
		_, code, found := strings.Cut(string(source), "\n\n") // after what the file is
		require.True(t, found)
		require.Contains(t, string(doc), code+"```\n", file)
	}
	for _, file := range []string{"cpp/load.h", "java/Load.java"} {
		require.Contains(t, string(doc), "(../integration/peers/"+file+")")
	}
}
