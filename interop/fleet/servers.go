package main

import (
	"math"

	"google.golang.org/grpc"
	"google.golang.org/grpc/orca"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/serverload"
)

// servers are those of one policy's play. They are for one goroutine.
type servers struct {
	nodes []*leastconntest.Node
	down  *leastconntest.Node // the one that does not run now
}

// start starts some more.
func (s *servers) start(n int) error {
	for range n {
		u := &utilized{}
		u.load = serverload.New(serverload.Options{Metrics: u})
		var err error
		node, startErr := leastconntest.StartNode(leastconntest.Options{
			ServerOptions: []grpc.ServerOption{grpc.StatsHandler(u.load)},
			Register:      func(r grpc.ServiceRegistrar) { err = u.load.Register(r) },
		})
		if startErr != nil {
			return startErr
		}
		s.nodes = append(s.nodes, node)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *servers) close() { leastconntest.CloseNodes(s.nodes...) }

func (s *servers) addrs() []string {
	all := make([]string, len(s.nodes))
	for i, n := range s.nodes {
		all[i] = n.Addr()
	}
	return all
}

// loads returns how many streams each server holds that runs, all of them, and their coefficient of variation: the
// standard deviation over the mean.
func (s *servers) loads() (loads []float64, sum, cv float64) {
	for _, n := range s.nodes {
		if n != s.down {
			loads = append(loads, float64(n.HeldStreams()))
		}
	}
	for _, l := range loads {
		sum += l
	}
	mean := sum / float64(len(loads))
	for _, l := range loads {
		cv += (l - mean) * (l - mean)
	}
	if mean == 0 {
		return loads, 0, 0
	}
	return loads, sum, math.Sqrt(cv/float64(len(loads))) / mean
}

// most is how many streams make a server fully utilized. Only weighted_round_robin asks, and it compares servers.
const most = 1000

// utilized has reports say a utilization, for weighted_round_robin.
type utilized struct{ load *serverload.Load }

// ServerMetrics implements orca.ServerMetricsProvider.
func (u *utilized) ServerMetrics() *orca.ServerMetrics {
	return &orca.ServerMetrics{
		AppUtilization: float64(u.load.InFlight()) / most,
		CPUUtilization: -1, MemUtilization: -1, QPS: -1, EPS: -1,
	}
}
