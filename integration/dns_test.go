package integration

import (
	"fmt"
	"testing"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// waitRPC waits until an RPC succeeds.
func (e *env) waitRPC() {
	e.Helper()
	wait(e.T, "an RPC succeeds", func() bool {
		_, err := e.unary()
		return err == nil
	})
}

// waitFailure waits until an RPC fails, and returns what its error says.
func (e *env) waitFailure() (text string) {
	e.Helper()
	wait(e.T, "an RPC fails", func() bool {
		_, err := e.unary()
		if err == nil {
			return false
		}
		require.Equal(e, codes.Unavailable, status.Code(err), err)
		text = status.Convert(err).Message()
		return true
	})
	return text
}

// RPCs fail with a text that names the server, the name and the cause, and
// succeed when DNS does.
func TestDNSFailsFromTheStart(t *testing.T) {
	answers := func(rcode int) func(*dnsServer) { return func(s *dnsServer) { s.fail(rcode) } }
	works := answers(dns.RcodeSuccess)
	for name, test := range map[string]struct {
		breaks, heals func(*dnsServer)
		cause         string
	}{
		"down":     {(*dnsServer).down, (*dnsServer).up, "connection refused"},
		"silent":   {func(s *dnsServer) { s.silence(true) }, func(s *dnsServer) { s.silence(false) }, "no answer in time"},
		"servfail": {answers(dns.RcodeServerFailure), works, "server misbehaving"},
		"refused":  {answers(dns.RcodeRefused), works, "server misbehaving"},
		"nxdomain": {answers(dns.RcodeNameError), works, "no such host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1")
			s := startDNS(t, "127.0.0.53") // where no client of another test is given its port while it is down
			s.set("A", "api.test.", "127.0.0.1")
			s.set("SRV", "_grpc._tcp.api.test.", "0 0 "+port+" api.test.")
			test.breaks(s)
			polled := dialTarget(t, fmt.Sprintf("dns-poll://%s/api.test:%s?interval=200ms&timeout=500ms", s.addr, port), all(ns...))
			srv := dialTarget(t, fmt.Sprintf("srv://%s/_grpc._tcp.api.test?interval=200ms&timeout=500ms", s.addr), all(ns...))
			for asked, e := range map[string]*env{
				"dns-poll: A records of api.test":         polled,
				"srv: SRV records of _grpc._tcp.api.test": srv,
			} {
				text := e.waitFailure()
				require.Contains(t, text, asked+" from "+s.addr+": ")
				require.Contains(t, text, test.cause)
			}
			test.heals(s)
			for _, e := range []*env{polled, srv} {
				e.waitReady(all(ns...)...)
				e.waitRPC()
			}
		})
	}
}

// NXDOMAIN is believed when it came emptyAfter times in a row. Then RPCs fail
// and say why, streams live on, and the counts are there when the name is back.
func TestDNSNameThatVanishes(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1", "127.0.0.2")
	s := startDNS(t, "127.0.0.1")
	s.set("A", "api.test.", "127.0.0.1", "127.0.0.2")
	e := dialTarget(t, fmt.Sprintf("dns-poll://%s/api.test:%s?interval=100ms&emptyAfter=4&family=4", s.addr, port), all(ns...))
	e.waitReady(all(ns...)...)
	streams := e.hold(4, map[string]int{"a": 2, "b": 2})
	s.fail(dns.RcodeNameError)
	asked := s.questions("A", "api.test.")
	e.waitFailure()
	require.GreaterOrEqual(t, s.questions("A", "api.test."), asked+4)
	wait(t, "the error says why", func() bool {
		return e.waitFailure() == "name resolver error: dns-poll: A records of api.test from "+s.addr+": no such host"
	})
	e.alive(streams)

	s.fail(dns.RcodeSuccess)
	e.waitReady(all(ns...)...)
	e.inFlight(2, 2)
	e.hold(2, map[string]int{"a": 1, "b": 1})
	e.alive(streams)
}

// A broken connection is a reason to look at once.
func TestDNSPollLooksWhenAConnectionBreaks(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1", "127.0.0.2")
	s := startDNS(t, "127.0.0.1")
	s.set("A", "api.test.", "127.0.0.1")
	e := dialTarget(t, fmt.Sprintf("dns-poll://%s/api.test:%s?interval=1h&minInterval=100ms", s.addr, port), all(ns...))
	e.waitReady(ns[0])
	s.set("A", "api.test.", "127.0.0.2")
	ns[0].Stop()
	e.waitReady(ns[1])
	e.hold(2, map[string]int{"b": 2})
}

// An answer that does not fit in a UDP packet comes over TCP; the targets of SRV
// records are more than are looked up at a time.
func TestDNSOneHundredRecords(t *testing.T) {
	var ips, targets []string
	everywhere := map[string]int{}
	for i := range 100 {
		ips = append(ips, fmt.Sprint("127.0.1.", i+1))
	}
	ns, port := startNodesOn(t, leastconntest.Options{}, ips...)
	s := startDNS(t, "127.0.0.1")
	for i, n := range ns {
		everywhere[n.Name()] = 2
		s.set("A", fmt.Sprintf("pod-%d.test.", i), ips[i])
		targets = append(targets, fmt.Sprintf("0 0 %s pod-%d.test.", port, i))
	}
	s.set("A", "api.test.", ips[:3]...)
	s.set("SRV", "_grpc._tcp.api.test.", targets[:3]...)
	polled := dialTarget(t, fmt.Sprintf("dns-poll://%s/api.test:%s?interval=500ms&family=4", s.addr, port), all(ns...))
	srv := dialTarget(t, fmt.Sprintf("srv://%s/_grpc._tcp.api.test?interval=500ms&family=4", s.addr), all(ns...))
	envs := map[string]*env{"A api.test.": polled, "SRV _grpc._tcp.api.test.": srv}
	for _, e := range envs {
		e.waitReady(all(ns[:3]...)...)
	}
	require.Empty(t, s.questionsOverTCP())

	s.set("A", "api.test.", ips...)
	s.set("SRV", "_grpc._tcp.api.test.", targets...)
	for question, e := range envs {
		e.waitReady(all(ns...)...)
		require.Contains(t, s.questionsOverTCP(), question)
		e.hold(200, everywhere)
	}
	s.waitQuestions("A", "api.test.", 2)
	for _, n := range ns {
		require.Equal(t, 2, n.Conns(), "connections to %s so far, of two channels", n.Name())
	}
}
