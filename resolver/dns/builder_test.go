package dns

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
)

// build builds the registered resolver of a dial target, as gRPC does.
func build(t *testing.T, dial string) (*recordingConn, resolver.Resolver, error) {
	t.Helper()
	u, err := url.Parse(dial)
	require.NoError(t, err)
	b := resolver.Get(u.Scheme)
	require.NotNil(t, b, u.Scheme)
	require.Implements(t, (*resolver.AuthorityOverrider)(nil), b)
	c := &recordingConn{}
	r, err := b.Build(resolver.Target{URL: *u}, c, resolver.BuildOptions{})
	return c, r, err
}

// An address needs no lookup: the list is there when Build returns.
func TestAddressesNeedNoLookup(t *testing.T) {
	for dial, want := range map[string]string{
		"dns-poll:///10.0.0.1":                       "10.0.0.1:443",
		"dns-poll://ns.invalid/[::ffff:10.0.0.1]:80": "10.0.0.1:80",
		"dns-poll:///[fe80:0::1%25lo]:80":            "[fe80::1%lo]:80",
	} {
		c, r, err := build(t, dial)
		require.NoError(t, err, dial)
		require.Equal(t, []string{want}, c.takeEvents(), dial)
		r.ResolveNow(resolver.ResolveNowOptions{})
		r.Close()
		require.Empty(t, c.takeEvents(), dial)
	}
}

func TestBuildRefuses(t *testing.T) {
	c, _, err := build(t, "dns-poll:///api.test?interval=1ms")
	require.EqualError(t, err, `dns-poll: target "dns-poll:///api.test?interval=1ms": parameter interval: value "1ms": want a duration from 100ms to 1h, such as 10s`)
	_, _, err = build(t, "srv:///api.test")
	require.ErrorContains(t, err, `srv: target "srv:///api.test": name "api.test": want _service._proto.name`)
	require.Empty(t, c.takeEvents())
}

// A failure must never look like an answer, whoever is asked.
func TestSourceIsStrictFirst(t *testing.T) {
	for server, goOnly := range map[string]bool{"": false, "127.0.0.1:53": true} {
		s := newSource(PollScheme, server, time.Second)
		strict, lenient := s.strict.(*net.Resolver), s.lenient.(*net.Resolver)
		require.True(t, strict.StrictErrors)
		require.False(t, lenient.StrictErrors)
		require.Equal(t, []bool{goOnly, goOnly}, []bool{strict.PreferGo, lenient.PreferGo})
	}
}

// A lenient resolver gives up a silent packet long before the system's two times 5 s.
func TestLenientGivesUpSoon(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
	defer cancel()
	_, err = newNetResolver(silent.LocalAddr().String(), false, time.Millisecond).LookupNetIP(ctx, "ip4", "api.test.")
	require.Error(t, err)
	require.NoError(t, ctx.Err())
}

// Close ends a lookup that nobody answers long before its timeout, and leaves no
// goroutine of package net behind.
func TestCloseWithoutAnAnswer(t *testing.T) {
	for _, dial := range []string{"dns-poll://SERVER/api.test.", "srv://SERVER/_grpc._tcp.api.test."} {
		silent, err := net.ListenPacket("udp", "127.0.0.1:0")
		require.NoError(t, err)
		c, r, err := build(t, strings.Replace(dial, "SERVER", silent.LocalAddr().String(), 1)+"?timeout=1m")
		require.NoError(t, err)
		_, _, err = silent.ReadFrom(make([]byte, 1500))
		require.NoError(t, err)

		// The system waits 10 s for an answer by default.
		began := time.Now()
		r.Close()
		require.Less(t, time.Since(began), 9*time.Second, dial)
		require.Eventually(t, func() bool { return !strings.Contains(stacks(), "net.(*Resolver)") }, time.Minute, time.Millisecond, dial)
		require.Empty(t, c.takeEvents(), dial)
		require.NoError(t, silent.Close())
	}
}

// Go leaves out a target of digits and dots. The error says so.
func TestSRVTargetThatIsAnAddress(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for query := make([]byte, 1500); ; {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			question := query[12 : 12+bytes.IndexByte(query[12:n], 0)+5]
			answer := append(query[:2:2], 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0) // one question, one answer
			answer = append(answer, question...)
			answer = append(answer, 0xc0, 12, 0, 33, 0, 1, 0, 0, 0, 9, 0, 16, 0, 0, 0, 0, 0, 80) // SRV, priority 0, weight 0, port 80
			answer = append(answer, "\x0210\x010\x010\x011\x00"...)
			server.WriteTo(answer, from)
		}
	}()
	c, r, err := build(t, "srv://"+server.LocalAddr().String()+"/_grpc._tcp.api.test.")
	require.NoError(t, err)
	var events []string
	require.Eventually(t, func() bool { events = c.takeEvents(); return len(events) > 0 }, time.Minute, time.Millisecond)
	r.Close()
	require.NoError(t, server.Close())
	<-done
	require.Equal(t, []string{"error: srv: SRV records of _grpc._tcp.api.test. from " + server.LocalAddr().String() + ": " + dropped}, events)
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
