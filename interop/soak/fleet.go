package main

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// fleet is the servers of a run.
type fleet struct {
	members []*member
	reports atomic.Int64 // that servers have sent

	mu     sync.Mutex
	owners map[string]owner // by every address that a server has had
}

// owner is whose an address is, or was: a server, by its name, in a member's place.
type owner struct{ member, server string }

// member is a place in the fleet. Its server may be replaced by one with other addresses.
type member struct {
	fleet  *fleet
	index  int
	name   string
	server atomic.Pointer[server]
	talk   atomic.Pointer[says] // what its servers say of their load; nil: the truth
}

// startFleet starts n servers; close it, also after an error.
func startFleet(n int) (*fleet, error) {
	f := &fleet{owners: map[string]owner{}}
	for i := range n {
		m := &member{fleet: f, index: i, name: nodeName(i)}
		if _, err := m.replace(); err != nil {
			return f, err
		}
		f.members = append(f.members, m)
	}
	return f, nil
}

// owner returns whose the address is, or was.
func (f *fleet) owner(addr string) owner {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.owners[addr]
}

// claim gives all the addresses to an owner, or none if one of them has had another one.
func (f *fleet) claim(o owner, addrs ...string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range addrs {
		if _, ok := f.owners[a]; ok {
			return false
		}
	}
	for _, a := range addrs {
		f.owners[a] = o
	}
	return true
}

// served is how many RPCs each member handles now.
func (f *fleet) served() map[string]int {
	live := map[string]int{}
	for _, m := range f.members {
		s := m.current()
		live[m.name] = s.plain.Live() + s.ageing.Live()
	}
	return live
}

// reported is how many RPCs the members' servers would report now.
func (f *fleet) reported() map[string]int {
	reported := map[string]int{}
	for _, m := range f.members {
		reported[m.name] = int(m.current().talk.load.InFlight())
	}
	return reported
}

// conns is how many connections the servers have open.
func (f *fleet) conns() int {
	open := 0
	for _, m := range f.members {
		s := m.current()
		open += s.plain.OpenConns() + s.ageing.OpenConns()
	}
	return open
}

func (f *fleet) close() {
	for _, m := range f.members {
		m.current().close()
	}
}

// current is the member's server.
func (m *member) current() *server { return m.server.Load() }

// replace gives the member a new server on addresses that none had before, and returns the old one, nil at first.
// Addresses are not used again, since the load of what an earlier owner left there would be the new one's.
func (m *member) replace() (old *server, err error) {
	for {
		s, err := startServer(m.name, m.index%3 == 2, &m.fleet.reports)
		if err != nil {
			return nil, err
		}
		if m.fleet.claim(owner{m.name, s.name}, s.addr, s.direct) {
			old := m.server.Swap(s)
			s.talk.says.Store(m.talk.Load())
			return old, nil
		}
		defer s.close() // not before there is another one, which would get the same addresses
	}
}

// says has the member's server tell something else of its load, and those that replace it. It may be called while one does.
func (m *member) says(s *says) {
	m.talk.Store(s)
	m.current().talk.says.Store(m.talk.Load())
}

// server is two nodes behind one address: one that ages its connections, and one that does not. New connections go to
// one of them; at its own address the latter can be reached as well.
type server struct {
	name          string // the member's, with the address
	addr          string // that lists have
	direct        string // that lists have besides when the endpoint has two
	streamLimit   uint32 // per connection, while no fault changes it
	proxy         *leastconntest.Proxy
	plain, ageing *leastconntest.Node
	talk          *talk // of both
}

// Connections to an ageing node get a GOAWAY after connAge, and are closed with what still runs on them connGrace later.
const (
	connAge   = 200 * time.Millisecond
	connGrace = 500 * time.Millisecond
)

// tightStreams is how many streams a tight server allows on a connection; others allow any number.
const (
	tightStreams   = 8
	noStreamsLimit = math.MaxUint32
)

// startServer starts a server; a tight one allows few streams on a connection.
func startServer(member string, tight bool, reports *atomic.Int64) (*server, error) {
	// Behind a silent network the handshake of a connection may never come.
	talk := newTalk(reports)
	options := append(talk.options(), grpc.ConnectionTimeout(time.Second))
	streamLimit := uint32(noStreamsLimit)
	if tight {
		streamLimit = tightStreams
		options = append(options, grpc.MaxConcurrentStreams(tightStreams))
	}
	plain, err := leastconntest.StartNode(leastconntest.Options{Name: member, Register: talk.register, ServerOptions: options})
	if err != nil {
		return nil, err
	}
	ageing, err := leastconntest.StartNode(leastconntest.Options{Name: member, Register: talk.register, ServerOptions: append(options,
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: connAge, MaxConnectionAgeGrace: connGrace}))})
	if err != nil {
		plain.Close()
		return nil, err
	}
	proxy, err := leastconntest.StartProxy(plain.Addr())
	if err != nil {
		leastconntest.CloseNodes(plain, ageing)
		return nil, err
	}
	return &server{
		name: member + "@" + proxy.Addr(), addr: proxy.Addr(), direct: plain.Addr(),
		streamLimit: streamLimit, proxy: proxy, plain: plain, ageing: ageing, talk: talk,
	}, nil
}

// each does the same to both nodes.
func (s *server) each(do func(*leastconntest.Node)) {
	do(s.plain)
	do(s.ageing)
}

// allow tells clients how many streams they may have on a connection.
func (s *server) allow(streams uint32) {
	s.each(func(n *leastconntest.Node) { n.SetStreamLimit(streams) })
}

// goAway has all clients connect anew.
func (s *server) goAway() { s.each((*leastconntest.Node).GoAway) }

func (s *server) stop() { s.each((*leastconntest.Node).Stop) }

func (s *server) restart() error {
	for _, n := range []*leastconntest.Node{s.plain, s.ageing} {
		if err := n.Restart(); err != nil {
			return fmt.Errorf("restart: %w", err)
		}
	}
	return nil
}

// age moves the connections to the node that ages them, or back. A GOAWAY makes clients connect anew.
func (s *server) age(on bool) error {
	from, to := s.plain, s.ageing
	if !on {
		from, to = s.ageing, s.plain
	}
	if err := s.proxy.SetTarget(to.Addr()); err != nil {
		return err
	}
	from.GoAway()
	return nil
}

func (s *server) close() {
	s.proxy.Close() // first: a server waits for handshakes that hang
	leastconntest.CloseNodes(s.plain, s.ageing)
}
