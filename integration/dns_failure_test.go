package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcdns "github.com/leastconn/grpc-leastconn/resolver/dns"
)

// waitRPC waits until an RPC succeeds.
func (l *link) waitRPC() {
	l.t.Helper()
	wait(l.t, "an RPC succeeds", func() bool {
		_, err := l.unary()
		return err == nil
	})
}

// waitFailure waits until an RPC fails, and returns what its error says.
func (l *link) waitFailure() (text string) {
	l.t.Helper()
	wait(l.t, "an RPC fails", func() bool {
		_, err := l.unary()
		if err == nil {
			return false
		}
		require.Equal(l.t, codes.Unavailable, status.Code(err), err)
		text = status.Convert(err).Message()
		return true
	})
	return text
}

// TestDNSFailsFromTheStart: RPCs fail with a text that names the server, the
// name and the cause, and succeed when DNS does.
func TestDNSFailsFromTheStart(t *testing.T) {
	for name, test := range map[string]struct {
		breaks, heals func(s *dnsServer)
		cause         string
	}{
		"down":     {func(s *dnsServer) { s.down() }, func(s *dnsServer) { s.up() }, "connection refused"},
		"silent":   {func(s *dnsServer) { s.silence(true) }, func(s *dnsServer) { s.silence(false) }, "no answer in time"},
		"servfail": {func(s *dnsServer) { s.failAll(dns.RcodeServerFailure) }, func(s *dnsServer) { s.failAll(dns.RcodeSuccess) }, "server misbehaving"},
		"refused":  {func(s *dnsServer) { s.failAll(dns.RcodeRefused) }, func(s *dnsServer) { s.failAll(dns.RcodeSuccess) }, "server misbehaving"},
		"nxdomain": {func(s *dnsServer) { s.failAll(dns.RcodeNameError) }, func(s *dnsServer) { s.failAll(dns.RcodeSuccess) }, "no such host"},
	} {
		t.Run(name, func(t *testing.T) {
			ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1")
			s := startDNS(t, "127.0.0.1")
			s.set("A", "api.test.", "127.0.0.1")
			s.set("SRV", "_grpc._tcp.api.test.", "0 0 "+port+" api.test.")
			test.breaks(s)
			polled := dialTarget(t, fmt.Sprintf("dns-poll://%s/api.test:%s?interval=200ms&timeout=500ms", s.addr, port))
			srv := dialTarget(t, fmt.Sprintf("srv://%s/_grpc._tcp.api.test?interval=200ms&timeout=500ms", s.addr))
			text := polled.waitFailure()
			require.Contains(t, text, "dns-poll: A records of api.test from "+s.addr+": ")
			require.Contains(t, text, test.cause)
			text = srv.waitFailure()
			require.Contains(t, text, "srv: SRV records of _grpc._tcp.api.test from "+s.addr+": ")
			require.Contains(t, text, test.cause)

			test.heals(s)
			polled.waitUsable(ns...)
			srv.waitUsable(ns...)
			polled.waitRPC()
			srv.waitRPC()
		})
	}
}

func (s *dnsServer) failAll(rcode int) {
	s.fail("A", "api.test.", rcode)
	s.fail("AAAA", "api.test.", rcode)
	s.fail("SRV", "_grpc._tcp.api.test.", rcode)
}

// TestDNSServerDownAndBack: nothing changes while the DNS server is away, even
// for long, and what changed meanwhile is seen when it is back.
func TestDNSServerDownAndBack(t *testing.T) {
	const interval = 200 * time.Millisecond
	ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1", "127.0.0.2", "127.0.0.3")
	s := startDNS(t, "127.0.0.1")
	s.set("A", "api.test.", "127.0.0.1", "127.0.0.2")
	failures := &failureCounter{Builder: resolver.Get(lcdns.PollScheme)}
	l := dialTarget(t, fmt.Sprintf("dns-poll://%s/api.test:%s?interval=%s", s.addr, port, interval), grpc.WithResolvers(failures))
	l.waitUsable(ns[:2]...)
	streams, _ := l.hold(2)

	s.down()
	wait(t, "five lookups have failed", func() bool {
		_, err := l.unary()
		require.NoError(t, err)
		return failures.reported.Load() >= 5
	})
	more, by := l.hold(2)
	require.Equal(t, map[string]int{"a": 1, "b": 1}, by)

	s.set("A", "api.test.", "127.0.0.2", "127.0.0.3")
	s.up()
	l.waitUsable(ns[2])
	wait(t, "a is not used", func() bool { return !l.usable(ns[0]) })
	require.Equal(t, []int{2, 2, 0}, l.inFlight(ns...))
	l.alive(append(streams, more...))
}

// TestDNSServerFailureKeepsTheList: many lookups in a row that fail change
// nothing.
func TestDNSServerFailureKeepsTheList(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1", "127.0.0.2")
	s := startDNS(t, "127.0.0.1")
	s.set("A", "api.test.", "127.0.0.1", "127.0.0.2")
	l := dialTarget(t, fmt.Sprintf("dns-poll://%s/api.test:%s?interval=100ms&emptyAfter=1&family=4", s.addr, port))
	l.waitUsable(ns...)
	streams, _ := l.hold(2)
	s.fail("A", "api.test.", dns.RcodeServerFailure)
	s.waitQuestions("A", "api.test.", 20)
	more, by := l.hold(2)
	require.Equal(t, map[string]int{"a": 1, "b": 1}, by)
	l.alive(append(streams, more...))
	require.Equal(t, []int{1, 1}, []int{ns[0].Conns(), ns[1].Conns()})
}

// TestDNSNameThatVanishes: NXDOMAIN is believed when it came emptyAfter times in
// a row. Then RPCs fail and say why, streams live on, and the counts are there
// when the name is back.
func TestDNSNameThatVanishes(t *testing.T) {
	ns, port := startNodesOn(t, leastconntest.Options{}, "127.0.0.1", "127.0.0.2")
	s := startDNS(t, "127.0.0.1")
	s.set("A", "api.test.", "127.0.0.1", "127.0.0.2")
	l := dialTarget(t, fmt.Sprintf("dns-poll://%s/api.test:%s?interval=500ms&emptyAfter=4&family=4", s.addr, port))
	l.waitUsable(ns...)
	streams, _ := l.hold(4)

	// Twice, and then the name is there again, is as good as never.
	s.fail("A", "api.test.", dns.RcodeNameError)
	lookups := s.questions("A", "api.test.")
	wait(t, "two lookups", func() bool { return s.questions("A", "api.test.") >= lookups+2 })
	s.fail("A", "api.test.", dns.RcodeSuccess)
	for lookups = s.questions("A", "api.test."); s.questions("A", "api.test.") < lookups+3; {
		_, err := l.unary()
		require.NoError(t, err)
	}
	require.True(t, l.usable(ns[0]) && l.usable(ns[1]))

	s.fail("A", "api.test.", dns.RcodeNameError)
	lookups = s.questions("A", "api.test.")
	text := l.waitFailure()
	require.GreaterOrEqual(t, s.questions("A", "api.test."), lookups+4)
	wait(t, "the error says why", func() bool {
		text = l.waitFailure()
		return text == "name resolver error: dns-poll: A records of api.test from "+s.addr+": no such host"
	})
	l.alive(streams)

	s.fail("A", "api.test.", dns.RcodeSuccess)
	l.waitUsable(ns...)
	require.Equal(t, []int{2, 2}, l.inFlight(ns...))
	_, by := l.hold(2)
	require.Equal(t, map[string]int{"a": 1, "b": 1}, by)
	l.alive(streams)
}
