package main

import (
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// server is two nodes behind one address: one that ages its connections, and one that does not. New connections go to
// one of them; at its own address the latter can be reached as well.
type server struct {
	name          string // the member's, with the address
	addr          string // that lists have
	direct        string // that lists have besides when the endpoint has two
	proxy         *leastconntest.Proxy
	plain, ageing *leastconntest.Node
}

// Connections to an ageing node get a GOAWAY after connAge, and are closed with what still runs on them connGrace later.
const (
	connAge   = 200 * time.Millisecond
	connGrace = 500 * time.Millisecond
)

// tightStreams is how many streams a tight server allows on a connection.
const tightStreams = 8

// startServer starts a server; a tight one lets RPCs of a connection wait until it has less than a few.
func startServer(member string, tight bool) (*server, error) {
	// Behind a silent network the handshake of a connection may never come.
	options := []grpc.ServerOption{grpc.ConnectionTimeout(time.Second)}
	if tight {
		options = append(options, grpc.MaxConcurrentStreams(tightStreams))
	}
	plain, err := leastconntest.StartNode(leastconntest.Options{Name: member, ServerOptions: options})
	if err != nil {
		return nil, err
	}
	ageing, err := leastconntest.StartNode(leastconntest.Options{Name: member, ServerOptions: append(options,
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
		proxy: proxy, plain: plain, ageing: ageing,
	}, nil
}

// each does the same to both nodes.
func (s *server) each(do func(*leastconntest.Node)) {
	do(s.plain)
	do(s.ageing)
}

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
