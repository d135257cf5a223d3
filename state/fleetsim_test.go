package state_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// fleetSim is many clients and servers in virtual time. Each client keeps some streams
// open: one that ends is opened again soon. What a client decides depends on the
// reports that it has had by then, so they are delivered when it decides.
type fleetSim struct {
	fleetConfig
	*rand.Rand
	now     float64 // seconds
	servers []*fleetServer
	clients []*fleetClient
	events  fleetEvents
	meter   meter
	took    []float64 // seconds, of calls that began when they were measured
	measure bool
}

type fleetConfig struct {
	clients, streams, servers int
	interval                  float64 // between two reports of a server to a client
	life                      func(r *rand.Rand) float64
	rule                      func(f *fleetSim, c *fleetClient) fleetRule
	lost                      float64                  // part of reports
	late                      float64                  // seconds
	silent                    float64                  // part of servers
	capacity                  func(server int) int     // nil: all 1
	slow                      func(server int) float64 // how much longer streams last there; nil: as long
	foreign                   int                      // streams of others, on the first half of the servers
	lie                       func(server int, inFlight int64, rps float64) (int64, float64)
	calls                     float64 // per second and server, in place of streams: see call
}

const meanLife = 60.0

func exponential(r *rand.Rand) float64 { return r.ExpFloat64() * meanLife }

// heavy is Pareto with infinite variance and the same mean.
func heavy(r *rand.Rand) float64 {
	const shape = 1.5
	return meanLife * (shape - 1) / shape * math.Pow(1-r.Float64(), -1/shape)
}

// fleetRule is how a client chooses.
type fleetRule interface {
	choose() int
	ended(server int)
	report(server int, inFlight int64, rps, at float64)
	joins(server int)
	leaves(server int)
}

type fleetClient struct {
	rule   fleetRule
	phase  []float64 // by server: when its first report comes
	fed    []float64 // the last one that it has had
	others []int64   // by server: in flight at its last report, own aside
	own    []int64
	ready  []bool
}

type fleetServer struct {
	load     int
	begun    int
	history  []fleetLoad
	capacity int
	silent   bool
	up       bool
	epoch    int
	idle     float64 // when it will have served all calls that have come
}

// fleetLoad is a server's load since a time.
type fleetLoad struct {
	since       float64
	load, begun int
}

type fleetEvent struct {
	at     float64
	client *fleetClient
	server int
	epoch  int // of the server, when the stream began
	do     func()
}

type fleetEvents []fleetEvent

func (q fleetEvents) Len() int           { return len(q) }
func (q fleetEvents) Less(i, j int) bool { return q[i].at < q[j].at }
func (q fleetEvents) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *fleetEvents) Push(x any)        { *q = append(*q, x.(fleetEvent)) }
func (q *fleetEvents) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}

func newFleet(c fleetConfig, seed uint64) *fleetSim {
	f := &fleetSim{fleetConfig: c, Rand: rand.New(rand.NewPCG(seed, 1))}
	if f.life == nil {
		f.life = exponential
	}
	foreign := &fleetClient{}
	foreign.rule = &foreignRule{f: f}
	for range c.clients {
		cl := &fleetClient{}
		f.clients = append(f.clients, cl)
		cl.rule = c.rule(f, cl)
	}
	for i := range c.servers {
		f.addServer()
		f.servers[i].silent = float64(i%10) < 10*c.silent
	}
	for range c.foreign {
		f.at(f.Float64()*meanLife, func() { f.open(foreign) })
	}
	for _, cl := range f.clients {
		if c.calls > 0 {
			f.at(0, func() { f.call(cl) })
		}
		for range c.streams {
			f.at(f.Float64()*meanLife/4, func() { f.open(cl) })
		}
	}
	return f
}

func (f *fleetSim) at(time float64, do func()) { heap.Push(&f.events, fleetEvent{at: time, do: do}) }

func (f *fleetSim) addServer() int {
	i := len(f.servers)
	s := &fleetServer{capacity: 1}
	if f.capacity != nil {
		s.capacity = f.capacity(i)
	}
	f.servers = append(f.servers, s)
	for _, c := range f.clients {
		c.phase, c.fed = append(c.phase, 0), append(c.fed, 0)
		c.others, c.own, c.ready = append(c.others, -1), append(c.own, 0), append(c.ready, false)
	}
	f.start(i)
	return i
}

// start has a server be ready, and report to each client at a time of its own.
func (f *fleetSim) start(i int) {
	s := f.servers[i]
	s.up = true
	f.note(s)
	for _, c := range f.clients {
		c.phase[i] = f.now + f.Float64()*f.interval
		c.fed[i], c.others[i], c.ready[i] = math.Inf(-1), -1, true
		c.rule.joins(i)
	}
}

// stop ends a server with all streams there, which begin elsewhere.
func (f *fleetSim) stop(i int) {
	s := f.servers[i]
	s.up = false
	s.epoch++
	for _, c := range f.clients {
		c.ready[i] = false
		c.rule.leaves(i)
		for c.own[i] > 0 {
			c.own[i]--
			s.load--
			c.rule.ended(i)
			f.open(c)
		}
	}
	f.note(s)
}

func (f *fleetSim) note(s *fleetServer) {
	s.history = append(s.history, fleetLoad{f.now, s.load, s.begun})
	if n := len(s.history); n > 1<<15 {
		s.history = slices.Clone(s.history[n-1<<14:])
	}
}

// open has a client open a stream.
func (f *fleetSim) open(c *fleetClient) {
	f.deliver(c)
	i := c.rule.choose()
	s := f.servers[i]
	s.load++
	s.begun++
	if c.own != nil {
		c.own[i]++
	}
	f.note(s)
	life := f.life(f.Rand)
	if f.slow != nil {
		life *= f.slow(i)
	}
	if f.calls > 0 {
		life = f.queue(s, life)
	}
	heap.Push(&f.events, fleetEvent{at: f.now + life, client: c, server: i, epoch: s.epoch})
}

// end ends a stream.
func (f *fleetSim) end(e fleetEvent) {
	s := f.servers[e.server]
	if s.epoch != e.epoch {
		return
	}
	f.deliver(e.client)
	s.load--
	f.note(s)
	if e.client.own != nil {
		e.client.own[e.server]--
	}
	e.client.rule.ended(e.server)
	if f.calls == 0 {
		f.at(f.now+f.ExpFloat64()*meanLife/50, func() { f.open(e.client) })
	}
}

// run lets time pass, and calls each, if there is one, every second.
func (f *fleetSim) run(until float64, each func()) {
	next := math.Floor(f.now) + 1
	for len(f.events) > 0 && f.events[0].at <= until {
		e := heap.Pop(&f.events).(fleetEvent)
		for ; each != nil && next <= e.at; next++ {
			f.now = next
			each()
		}
		f.now = e.at
		if e.do != nil {
			e.do()
		} else {
			f.end(e)
		}
	}
	f.now = until
}

// meter is the mean of the coefficient of variation of the servers' loads.
type meter struct{ sum, n float64 }

func (f *fleetSim) sample() {
	sum, squares, n := 0.0, 0.0, 0.0
	for _, s := range f.servers {
		x := float64(s.load) / float64(s.capacity)
		sum, squares, n = sum+x, squares+x*x, n+1
	}
	mean := sum / n
	f.meter.sum += math.Sqrt(squares/n-mean*mean) / mean
	f.meter.n++
}

func (f *fleetSim) cv() float64 { return f.meter.sum / f.meter.n }

// mean returns the mean load of servers that are up.
func (f *fleetSim) mean() float64 {
	sum, n := 0, 0
	for _, s := range f.servers {
		if s.up {
			sum, n = sum+s.load, n+1
		}
	}
	return float64(sum) / float64(n)
}

// close ends all streams.
func (f *fleetSim) close() {
	for _, c := range f.clients {
		for i := range f.servers {
			for ; c.own[i] > 0; c.own[i]-- {
				c.rule.ended(i)
			}
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
