package state_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// movingFleet is processes with ledgers of their own, and streams that move, on servers that
// report to each process at a time of its own.
type movingFleet struct {
	*testing.T
	movingConfig
	servers   []string
	processes []*streams
	due       [][]reportTo        // by step of an interval
	begun     []map[string]int    // by step, since the beginning
	load      map[string]int      // live RPCs by server
	mu        sync.Mutex          // guards load and opened
	opened    map[string]int      // ever, by server
	limits    []*state.Connection // of servers that are to take nothing yet
}

// movingConfig is a fleet whose streams are on the first servers at first.
type movingConfig struct {
	processes, each, servers int
	first                    int
	interval                 time.Duration
	joins                    bool // the other servers join; else they have been there, and got nothing
	silent                   float64
	tells                    func(server int, inFlight int64) int64 // nil: the truth
	life                     time.Duration                          // mean; 0: streams do not end
}

type reportTo struct {
	process *streams
	server  int
}

// reportSteps is how many moments of an interval reports come at.
const reportSteps = 100

func newMovingFleet(e *env, c movingConfig) *movingFleet {
	f := &movingFleet{
		T: e.T, movingConfig: c, servers: names(c.servers), due: make([][]reportTo, reportSteps),
		load: map[string]int{}, opened: map[string]int{},
	}
	for range c.processes {
		p := newEnvOn(e.T, state.Open(""))
		p.endpointSet.SetReports(c.interval)
		p.add(f.servers[:c.first]...)
		if !c.joins {
			p.list(f.servers[c.first:]...)
			for _, a := range f.servers[c.first:] {
				limit := p.members[a].NewConnection()
				limit.SetLimit(0)
				f.limits = append(f.limits, limit)
				p.set(a, 1)
			}
		}
		s := p.streams()
		s.counts = f.count
		p.endpointSet.SetRebalance(state.Rebalance{PerSecond: 10})
		f.processes = append(f.processes, s)
		if c.joins {
			f.reports(s, 0, c.first)
		} else {
			f.reports(s, 0, c.servers)
		}
	}
	return f
}

// reports has servers report to a process from now on.
func (f *movingFleet) reports(s *streams, from, to int) {
	for i := from; i < to; i++ {
		if float64(i%10) >= 10*f.silent {
			step := rand.IntN(reportSteps)
			f.due[step] = append(f.due[step], reportTo{s, i})
		}
	}
}

func (f *movingFleet) count(addr string, by int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.load[addr] += by
	f.opened[addr] += max(0, by)
}

// begin opens the streams.
func (f *movingFleet) begin() {
	for _, s := range f.processes {
		s.before = time.Duration(rand.Int64N(int64(100 * time.Millisecond)))
		s.life = f.life
		s.begin(f.each)
	}
}

// open has the servers take RPCs that have taken none.
func (f *movingFleet) open() {
	for _, c := range f.limits {
		c.SetLimit(math.MaxUint32)
	}
	if f.joins {
		for _, s := range f.processes {
			s.add(f.servers[f.first:]...)
			f.reports(s, f.first, len(f.servers))
		}
	}
}

// run lets some intervals pass, and calls each at the end of each of them.
func (f *movingFleet) run(intervals int, each func()) {
	over := max(1, int(time.Second*reportSteps/f.interval)) // steps that rates are of
	for range intervals {
		for step := range reportSteps {
			time.Sleep(f.interval / reportSteps)
			synctest.Wait()
			f.mu.Lock()
			begun := make(map[string]int, len(f.opened))
			for a, n := range f.opened {
				begun[a] = n
			}
			f.mu.Unlock()
			if f.begun = append(f.begun, begun); len(f.begun) > max(over, reportSteps)+1 {
				f.begun = f.begun[1:]
			}
			before := f.begun[0]
			passed := float64(len(f.begun)-1) * (f.interval / reportSteps).Seconds()
			for _, r := range f.due[step] {
				addr := f.servers[r.server]
				f.mu.Lock()
				inFlight := int64(f.load[addr])
				f.mu.Unlock()
				if f.tells != nil {
					inFlight = f.tells(r.server, inFlight)
				}
				r.process.members[addr].Report(inFlight, float64(begun[addr]-before[addr])/max(passed, 1e-3))
			}
		}
		if each != nil {
			each()
		}
	}
}

// end ends all streams.
func (f *movingFleet) end() {
	for _, s := range f.processes {
		s.end()
	}
}

func (f *movingFleet) mean() float64 {
	return float64(len(f.processes)*f.each) / float64(len(f.servers))
}

// cv returns the coefficient of variation of the loads of servers that an index is right for.
func (f *movingFleet) cv(of func(int) bool) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	sum, squares, n := 0.0, 0.0, 0.0
	for i, a := range f.servers {
		if x := float64(f.load[a]); of == nil || of(i) {
			sum, squares, n = sum+x, squares+x*x, n+1
		}
	}
	mean := sum / n
	return math.Sqrt(max(0, squares/n-mean*mean)) / mean
}

// most returns the highest load of servers from one on, over the mean.
func (f *movingFleet) most(from int) (most float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.servers[from:] {
		most = max(most, float64(f.load[a])/f.mean())
	}
	return most
}

// told returns how many streams were asked, and how often one process was for each of its streams.
func (f *movingFleet) told() (all int, most float64) {
	for _, s := range f.processes {
		n := s.told()
		all += n
		most = max(most, float64(n)/float64(f.each))
	}
	return all, most
}

// fewest returns how many streams have to move for servers to be level.
func (f *movingFleet) fewest() (n float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.servers {
		n += max(0, float64(f.load[a])-f.mean())
	}
	return n
}

// check asserts the invariants of all ledgers.
func (f *movingFleet) check() {
	for _, s := range f.processes {
		require.NoError(f, s.ledger.Check())
	}
}
