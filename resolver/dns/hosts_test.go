package dns

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
)

// resolve runs the resolver of a target on a zone, as Build does. A step is one
// more lookup; it returns what the channel is told.
func runResolver(t *testing.T, dial string, z *fakeDNS) (step func() []string) {
	t.Helper()
	parsed, _, err := parseDial(t, dial)
	require.NoError(t, err)
	parsed.interval, parsed.minInterval = time.Hour, 100*time.Millisecond
	c := &recordingConn{}
	r := startPoller(parsed.params, c, parsed.lookup(z))
	t.Cleanup(r.Close)
	started := false
	return func() []string {
		if started {
			r.ResolveNow(resolver.ResolveNowOptions{})
			time.Sleep(100 * time.Millisecond)
		}
		started = true
		synctest.Wait()
		return c.takeEvents()
	}
}

const (
	hostMissing = "error: dns-poll: A records of api.test from ns.test:53: no such host"
	hostFailed  = "error: dns-poll: A records of api.test from ns.test:53: server misbehaving"
	hostsFailed = hostFailed + "; dns-poll: AAAA records of api.test from ns.test:53: server misbehaving"
)

func TestAddressesAreEndpoints(t *testing.T) {
	for family, want := range map[string]string{
		"":          "10.0.0.1:80 10.0.0.9:80 10.0.0.10:80 [fd00::1]:80 [fd00::2]:80",
		"?family=4": "10.0.0.1:80 10.0.0.9:80 10.0.0.10:80",
		"?family=6": "[fd00::1]:80 [fd00::2]:80",
	} {
		synctest.Test(t, func(t *testing.T) {
			z := &fakeDNS{addrs: map[string][]string{
				"A api.test":    {"10.0.0.10", "::ffff:10.0.0.1", "10.0.0.9", "10.0.0.10"},
				"AAAA api.test": {"fd00::2", "fd00:0::1"},
			}}
			step := runResolver(t, "dns-poll://ns.test/api.test:80"+family, z)
			require.Equal(t, []string{want}, step(), family)
			z.addrs["A api.test"] = []string{"10.0.0.9", "10.0.0.10", "10.0.0.1"}
			z.addrs["AAAA api.test"] = []string{"fd00::1", "fd00::2", "fd00::1"}
			require.Empty(t, step(), "the order of records is no change")
			require.Equal(t, family == "?family=6", z.asked["A api.test"] == 0)
			require.Equal(t, family == "?family=4", z.asked["AAAA api.test"] == 0)
		})
	}
}

// A host with addresses in one family only is as good as any.
func TestOneFamilyIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &fakeDNS{addrs: map[string][]string{"AAAA api.test": {"fd00::1"}}}
		step := runResolver(t, "dns-poll:///api.test:80", z)
		require.Equal(t, []string{"[fd00::1]:80"}, step())
		for range 5 {
			require.Empty(t, step())
		}
	})
}

func TestMissingIsBelievedAfterSomeInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &fakeDNS{addrs: map[string][]string{"A api.test": {"10.0.0.1"}}}
		gone := map[string]error{"A api.test": nxDomain, "AAAA api.test": nxDomain}
		step := runResolver(t, "dns-poll://ns.test/api.test:80?emptyAfter=3", z)
		require.Equal(t, []string{"10.0.0.1:80"}, step())
		z.fails = gone
		require.Equal(t, []string{hostMissing}, step())
		require.Equal(t, []string{hostMissing}, step())

		// A good answer, and a failure, begin the row anew.
		z.fails = nil
		require.Empty(t, step())
		z.fails = gone
		require.Equal(t, []string{hostMissing}, step())
		require.Equal(t, []string{hostMissing}, step())
		z.fails = map[string]error{"A api.test": servFail, "AAAA api.test": servFail}
		require.Equal(t, []string{hostsFailed}, step())
		z.fails = gone
		require.Equal(t, []string{hostMissing}, step())
		require.Equal(t, []string{hostMissing}, step())
		require.Equal(t, []string{"", hostMissing}, step())
		require.Equal(t, []string{hostMissing}, step())

		z.fails = nil
		require.Equal(t, []string{"10.0.0.1:80"}, step())
		z.fails = gone
		require.Equal(t, []string{hostMissing}, step())
	})
}

// An answer without records is the same, and emptyAfter=1 believes it at once.
func TestAnEmptyAnswerIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &fakeDNS{addrs: map[string][]string{"A api.test": {"10.0.0.1"}}}
		step := runResolver(t, "dns-poll://ns.test/api.test:80?emptyAfter=1", z)
		require.Equal(t, []string{"10.0.0.1:80"}, step())
		z.addrs = nil
		require.Equal(t, []string{"", "error: dns-poll: A records of api.test from ns.test:53: there are none"}, step())
	})
}

// Before any good answer there is nothing to believe: RPCs fail with the cause.
func TestMissingFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &fakeDNS{fails: map[string]error{"A api.test": nxDomain, "AAAA api.test": nxDomain}}
		step := runResolver(t, "dns-poll://ns.test/api.test:80", z)
		for range 5 {
			require.Equal(t, []string{hostMissing}, step())
		}
	})
}

// A failure of one family leaves its addresses as they were.
func TestAFailureOfOneFamily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &fakeDNS{addrs: map[string][]string{"A api.test": {"10.0.0.1"}, "AAAA api.test": {"fd00::1"}}}
		step := runResolver(t, "dns-poll://ns.test/api.test:80", z)
		require.Equal(t, []string{"10.0.0.1:80 [fd00::1]:80"}, step())
		z.fails = map[string]error{"A api.test": servFail}
		z.addrs["AAAA api.test"] = []string{"fd00::2"}
		require.Equal(t, []string{"10.0.0.1:80 [fd00::2]:80", hostFailed}, step())
		for range 5 {
			require.Equal(t, []string{hostFailed}, step())
		}
		z.fails["AAAA api.test"] = nxDomain
		for range 2 {
			require.Equal(t, []string{hostFailed}, step())
		}
		require.Equal(t, []string{"10.0.0.1:80", hostFailed}, step())
	})
}

func TestWhatErrorsSay(t *testing.T) {
	for want, given := range map[string]struct {
		server string
		err    error
	}{
		"dns-poll: A records of api.test from ns.test:53: refused":               {"ns.test:53", &net.DNSError{Err: "refused", Server: "10.0.0.1:53"}},
		"dns-poll: A records of api.test from 10.0.0.1:53: refused":              {"", &net.DNSError{Err: "refused", Server: "10.0.0.1:53"}},
		"dns-poll: A records of api.test from the system's resolver: refused":    {"", &net.DNSError{Err: "refused"}},
		"dns-poll: A records of api.test from ns.test:53: address x: unsuitable": {"ns.test:53", &net.AddrError{Err: "unsuitable", Addr: "x"}},
		"dns-poll: A records of api.test from ns.test:53: no answer in time":     {"ns.test:53", &net.DNSError{Err: "i/o timeout", IsTimeout: true}},
		"dns-poll: A records of api.test from ns.test:53: odd":                   {"ns.test:53", fmt.Errorf("odd")},
	} {
		s := source{scheme: PollScheme, server: given.server}
		err := s.failureOf(t.Context(), "A", "api.test", given.err)
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, given.err)
		_, otherFamily := given.err.(*net.AddrError)
		require.Equal(t, otherFamily, isNotFound(err))
	}
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	err := source{scheme: SRVScheme}.failureOf(late, "SRV", "api.test", nxDomain)
	require.EqualError(t, err, "srv: SRV records of api.test from the system's resolver: no answer in time")
	require.False(t, isNotFound(err))

	require.NoError(t, joinErrors(nil))
	var errs []error
	for _, text := range []string{"a", "b", "c", "d", "e"} {
		errs = append(errs, fmt.Errorf("%s", text))
	}
	require.EqualError(t, joinErrors(errs[:1]), "a")
	require.EqualError(t, joinErrors(errs[:3]), "a; b; c")
	require.EqualError(t, joinErrors(errs), "a; b; c; and 2 more")
}
