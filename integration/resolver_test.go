package integration

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	_ "github.com/leastconn/grpc-leastconn/resolver/dns"
)

// startNodesOn starts a node on each of the addresses of loopback, all with the
// same port, and names them a, b and so on.
func startNodesOn(t *testing.T, opts leastconntest.Options, ips ...string) (nodes []*leastconntest.Node, port string) {
	t.Helper()
	var err error
	for range 20 { // a port that is free on one address may be in use on another
		if nodes, port, err = tryNodesOn(opts, ips...); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	require.NoError(t, err)
	t.Cleanup(func() { leastconntest.CloseNodes(nodes...) })
	return nodes, port
}

func tryNodesOn(opts leastconntest.Options, ips ...string) (nodes []*leastconntest.Node, port string, err error) {
	port = "0"
	for i, ip := range ips {
		opts.Name, opts.Addr = string(rune('a'+i)), net.JoinHostPort(ip, port)
		if i > 25 {
			opts.Name = fmt.Sprint("n", i)
		}
		n, err := leastconntest.StartNode(opts)
		if err != nil {
			leastconntest.CloseNodes(nodes...)
			return nil, "", err
		}
		nodes = append(nodes, n)
		_, port, _ = net.SplitHostPort(n.Addr())
	}
	return nodes, port, nil
}

func ipOf(s server) string {
	ip, _, _ := net.SplitHostPort(s.Addr())
	return ip
}

// source is where a resolver has its list from.
type source interface {
	list(nodes ...*leastconntest.Node)
	dial(nodes ...*leastconntest.Node) *env // which it may list
	outage(start func() *traffic)           // while which RPCs go on
}

// sources start one for nodes on a port.
var sources = map[string]func(t *testing.T, port string) source{
	"dns-poll": func(t *testing.T, port string) source {
		return &dnsSource{dnsServer: startDNS(t, "127.0.0.1"), port: port, target: "dns-poll://%s/api.test:" + port + "?interval=200ms&family=4&emptyAfter=1"}
	},
	"srv": func(t *testing.T, port string) source {
		return &dnsSource{dnsServer: startDNS(t, "127.0.0.1"), port: port, target: "srv://%s/_grpc._tcp.api.test?interval=200ms&family=4&emptyAfter=1"}
	},
	"etcd": func(t *testing.T, _ string) source { return newEtcdSource(t) },
}

// dnsSource lists nodes as A records of one name, and as targets of SRV records.
type dnsSource struct {
	*dnsServer
	port, target string
}

func (s *dnsSource) list(nodes ...*leastconntest.Node) {
	var ips, targets []string
	for _, n := range nodes {
		ips = append(ips, ipOf(n))
		targets = append(targets, fmt.Sprintf("0 0 %s pod-%s.test.", s.port, n.Name()))
		s.set("A", "pod-"+n.Name()+".test.", ipOf(n))
	}
	s.set("A", "api.test.", ips...)
	s.set("SRV", "_grpc._tcp.api.test.", targets...)
}

func (s *dnsSource) dial(nodes ...*leastconntest.Node) *env {
	return dialTarget(s.t, fmt.Sprintf(s.target, s.addr), all(nodes...))
}

// outage is many lookups in a row that fail.
func (s *dnsSource) outage(start func() *traffic) {
	tr := start()
	s.fail(dns.RcodeServerFailure)
	for asked := s.questionsInAll(); s.questionsInAll() < asked+10; {
		tr.through("a", 1)
	}
	require.Empty(s.t, tr.end())
	s.fail(dns.RcodeSuccess)
}

// eachSource runs a test once for each source, which lists the first two of some
// nodes. They hold three streams each.
func eachSource(t *testing.T, nodes int, test func(t *testing.T, s source, ns []*leastconntest.Node, e *env, streams []*leastconntest.Stream)) {
	for name, start := range sources {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, port := startNodesOn(t, leastconntest.Options{}, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"}[:nodes]...)
			s := start(t, port)
			s.list(ns[:2]...)
			e := s.dial(ns...)
			e.waitReady(all(ns[:2]...)...)
			test(t, s, ns, e, e.hold(6, map[string]int{"a": 3, "b": 3}))
		})
	}
}

// A third server is listed and takes the next streams until it is level; streams
// that there are do not notice. One that is no longer listed gets no more and
// keeps its streams, with which it is known when it returns.
func TestResolversSeeAScaleOut(t *testing.T) {
	eachSource(t, 3, func(t *testing.T, s source, ns []*leastconntest.Node, e *env, streams []*leastconntest.Stream) {
		s.list(ns...)
		e.waitReady(ns[2])
		streams = append(streams, e.hold(3, map[string]int{"c": 3})...)
		streams = append(streams, e.hold(3, map[string]int{"a": 1, "b": 1, "c": 1})...)
		e.counts(4, 4, 4)
		e.alive(streams)
		e.connectedOnce(ns...)

		s.list(ns[1:]...)
		e.waitNotReady(ns[0])
		streams = append(streams, e.hold(4, map[string]int{"b": 2, "c": 2})...)
		e.alive(streams)
		e.counts(4, 6, 6)

		s.list(ns...)
		e.waitReady(ns[0])
		e.hold(2, map[string]int{"a": 2})
		e.counts(6, 6, 6)
	})
}

// All servers are replaced at once. No RPC fails, old streams live on, new ones
// go to the new servers, and when the old streams have ended nothing is left of
// the old servers.
func TestResolversSeeARollingUpdate(t *testing.T) {
	eachSource(t, 4, func(t *testing.T, s source, ns []*leastconntest.Node, e *env, streams []*leastconntest.Stream) {
		tr := e.traffic(2)
		s.list(ns[2:]...)
		e.waitReady(all(ns[2:]...)...)
		tr.through("c", 50)
		require.Empty(t, tr.end())
		e.waitNotReady(all(ns[:2]...)...)
		e.hold(4, map[string]int{"c": 2, "d": 2})
		e.counts(3, 3, 2, 2)
		e.endAll(streams)
		wait(t, "a and b are forgotten", func() bool { return len(e.snapshot().Endpoints) == 2 })
	})
}

// While a resolver has no answer the last list holds: no RPC fails, and no count
// changes but by RPCs. What is listed meanwhile is seen then.
func TestResolversOutlastAnOutage(t *testing.T) {
	eachSource(t, 3, func(t *testing.T, s source, ns []*leastconntest.Node, e *env, streams []*leastconntest.Stream) {
		s.outage(func() *traffic { return e.traffic(2) })
		streams = append(streams, e.hold(4, map[string]int{"a": 2, "b": 2})...)
		e.counts(5, 5, 0)
		s.list(ns...)
		e.waitReady(ns[2])
		streams = append(streams, e.hold(5, map[string]int{"c": 5})...)
		e.alive(streams)
		e.connectedOnce(ns...)
	})
}

// gRPC's own dns never asks again, while lookups of dns-poll go by.
func TestPlainDNSDoesNotSeeAScaleOut(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1", "127.0.0.2", "127.0.0.3")
	s := startDNS(t, "127.0.0.1")
	envs := map[string]*env{}
	for name, target := range map[string]string{"plain": "dns://%s/plain.test:%s", "polled": "dns-poll://%s/polled.test:%s?interval=200ms"} {
		s.set("A", name+".test.", "127.0.0.1", "127.0.0.2")
		envs[name] = dialTarget(t, fmt.Sprintf(target, s.addr, port), all(ns...))
		envs[name].waitReady(all(ns[:2]...)...)
		s.set("A", name+".test.", "127.0.0.1", "127.0.0.2", "127.0.0.3")
	}
	envs["polled"].waitReady(ns[2])
	s.waitQuestions("A", "polled.test.", 10)
	require.Equal(t, 1, s.questions("A", "plain.test."))
	envs["plain"].hold(6, map[string]int{"a": 3, "b": 3})
	envs["polled"].hold(6, map[string]int{"a": 2, "b": 2, "c": 2})
}
