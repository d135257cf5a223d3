package state_test

import (
	"fmt"
	"math"

	"github.com/leastconn/grpc-leastconn/state"
)

// leastConn is this package's rule, with or without reports.
type leastConn struct {
	f       *fleetSim
	ledger  *state.Ledger
	set     *state.EndpointSet
	ready   *state.ReadySet
	members []*state.Member
	leases  [][]state.Lease
}

func withReports(f *fleetSim, c *fleetClient) fleetRule {
	l := exactLocal(f, c).(*leastConn)
	l.set.SetReports(seconds(f.interval))
	return l
}

func exactLocal(f *fleetSim, _ *fleetClient) fleetRule {
	l := &leastConn{f: f, ledger: state.Open("")}
	l.set = l.ledger.NewEndpointSet("")
	l.ready = l.set.NewReadySet(0)
	return l
}

func (l *leastConn) choose() int {
	l.ledger.SetNow(seconds(l.f.now))
	lease, value, ok := l.ready.Acquire()
	if !ok {
		panic("nothing was chosen")
	}
	i := value.(int)
	l.leases[i] = append(l.leases[i], lease)
	return i
}

func (l *leastConn) ended(i int) {
	last := len(l.leases[i]) - 1
	l.leases[i][last].Release()
	l.leases[i] = l.leases[i][:last]
}

func (l *leastConn) report(i int, inFlight int64, rps, at float64) {
	l.ledger.SetNow(seconds(at))
	l.members[i].Report(inFlight, rps)
}

func (l *leastConn) joins(i int) {
	l.ledger.SetNow(seconds(l.f.now))
	if i == len(l.members) {
		l.members = append(l.members, l.set.Update(nil, []state.Identity{{Addrs: []string{fmt.Sprint(i)}}})...)
		l.leases = append(l.leases, nil)
	}
	l.ready.Set(l.members[i], uint32(l.f.servers[i].capacity), i)
}

func (l *leastConn) leaves(i int) {
	l.ledger.SetNow(seconds(l.f.now))
	l.ready.Remove(l.members[i])
}

// simple is a rule that looks at what the client knows anyway.
type simple struct {
	f    *fleetSim
	c    *fleetClient
	pick func(s *simple) int
	next int
}

func (s *simple) choose() int                         { return s.pick(s) }
func (s *simple) ended(int)                           {}
func (s *simple) report(int, int64, float64, float64) {}
func (s *simple) joins(int)                           {}
func (s *simple) leaves(int)                          {}

func simpleRule(pick func(s *simple) int) func(*fleetSim, *fleetClient) fleetRule {
	return func(f *fleetSim, c *fleetClient) fleetRule { return &simple{f: f, c: c, pick: pick, next: -1} }
}

// draw returns a server that is ready, at random.
func (s *simple) draw() int {
	for {
		if i := s.f.IntN(len(s.f.servers)); s.c.ready[i] {
			return i
		}
	}
}

// least returns the least of some servers by a figure, of equals any.
func (s *simple) least(of func(yield func(int) bool), by func(i int) float64) int {
	best, low, n := -1, math.Inf(1), 0
	for i := range of {
		x := by(i)
		if x < low {
			best, low, n = i, x, 0
		}
		if x == low {
			if n++; s.f.IntN(n) == 0 {
				best = i
			}
		}
	}
	return best
}

func (s *simple) all(yield func(int) bool) {
	for i, ready := range s.c.ready {
		if ready && !yield(i) {
			return
		}
	}
}

func (s *simple) drawn(k int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for range k {
			if !yield(s.draw()) {
				return
			}
		}
	}
}

// view is what the last report makes of a server's load: own changes since then count.
func (s *simple) view(i int) float64 { return float64(max(0, s.c.others[i]) + s.c.own[i]) }

func (s *simple) actual(i int) float64 { return float64(s.f.servers[i].load) }

var (
	bound      = simpleRule(func(s *simple) int { return s.least(s.all, s.actual) })
	twoLocal   = simpleRule(func(s *simple) int { return s.least(s.drawn(2), func(i int) float64 { return float64(s.c.own[i]) }) })
	roundRobin = simpleRule(func(s *simple) int {
		if s.next < 0 {
			s.next = s.draw()
		}
		for s.next = (s.next + 1) % len(s.c.ready); !s.c.ready[s.next]; {
			s.next = (s.next + 1) % len(s.c.ready)
		}
		return s.next
	})

	// B. Wydrowski et al., "Load is not what you should balance", NSDI 2024: probes for
	// each pick, here without a pool.
	threeProbes = simpleRule(func(s *simple) int { return s.least(s.drawn(3), s.actual) })

	// S. Vargaftik, I. Keslassy, A. Orda, "LSQ: load balancing in large-scale
	// heterogeneous systems with multiple dispatchers", 2020.
	lsq = simpleRule(func(s *simple) int { return s.least(s.all, s.view) })

	// M. Mitzenmacher, "How useful is old information?", 2000.
	twoReports  = simpleRule(func(s *simple) int { return s.least(s.drawn(2), s.view) })
	fourReports = simpleRule(func(s *simple) int { return s.least(s.drawn(4), s.view) })

	waterFilling = simpleRule((*simple).fill)
)

// fill is stochastic coordination (G. Goren, S. Vargaftik, Y. Moses, 2020 and 2021): each
// client chooses by chance, so that what all clients may begin in an interval would fill
// the servers up to one level.
func (s *simple) fill() int {
	arrivals := float64(s.f.fleetConfig.clients*s.f.streams) / meanLife * max(s.f.interval, 1e-3)
	loads := []float64{}
	for i := range s.all {
		loads = append(loads, s.view(i))
	}
	low, high := 0.0, 1e6
	for range 50 {
		level, sum := (low+high)/2, 0.0
		for _, x := range loads {
			sum += max(0, level-x)
		}
		if sum < max(1, arrivals) {
			low = level
		} else {
			high = level
		}
	}
	best, sum := -1, 0.0
	for i := range s.all {
		if room := max(0, low-s.view(i)); room > 0 {
			if sum += room; s.f.Float64()*sum < room {
				best = i
			}
		}
	}
	if best < 0 {
		return s.draw()
	}
	return best
}

// mixed is a rule for a half of the clients, and another one for the other.
func mixed(a, b func(*fleetSim, *fleetClient) fleetRule) func(*fleetSim, *fleetClient) fleetRule {
	return func(f *fleetSim, c *fleetClient) fleetRule {
		if len(f.clients)%2 == 0 {
			return a(f, c)
		}
		return b(f, c)
	}
}

// foreignRule is streams of others, which nobody balances.
type foreignRule struct {
	simple
	f *fleetSim
}

func (r *foreignRule) choose() int { return r.f.IntN((len(r.f.servers) + 1) / 2) }
