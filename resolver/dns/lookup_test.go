package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
)

const (
	pollDial = "dns-poll://ns.test/api.test:80"
	srvDial  = "srv://ns.test/_grpc._tcp.api.test"

	ofHost = "error: dns-poll: A records of api.test from ns.test:53: "
	of6    = "dns-poll: AAAA records of api.test from ns.test:53: "
	ofB    = "error: srv: A records of b.test. from ns.test:53: "
	ofC    = "error: srv: A records of c.test. from ns.test:53: "
	ofSRV  = "error: srv: SRV records of _grpc._tcp.api.test from ns.test:53: "

	noHost  = "no such host"
	none    = "there are none"
	failing = "server misbehaving"
	dropped = "records are left out whose targets are no host names (digits and dots, such as an IP address, are none)"
	gone    = "A api.test: nxdomain; AAAA api.test: nxdomain"
	down    = "A api.test: servfail; AAAA api.test: servfail"
)

// step is what DNS has from now on, and what the channel is told by each of the
// next lookups, of which there are times.
type step struct {
	zone  string
	times int
	want  []string
}

func once(zone string, want ...string) step         { return step{zone, 1, want} }
func times(n int, zone string, want ...string) step { return step{zone, n, want} }

// What DNS answers, and fails to, one lookup after another.
func TestLookups(t *testing.T) {
	for name, tc := range map[string]struct {
		dial  string
		steps []step
	}{
		"addresses are endpoints": {pollDial, []step{
			once("A api.test: 10.0.0.10 ::ffff:10.0.0.1 10.0.0.9 10.0.0.10; AAAA api.test: fd00::2 fd00:0::1",
				"10.0.0.1:80 10.0.0.9:80 10.0.0.10:80 [fd00::1]:80 [fd00::2]:80"),
			once("A api.test: 10.0.0.9 10.0.0.10 10.0.0.1; AAAA api.test: fd00::1 fd00::2 fd00::1"),
		}},
		"only IPv4 is asked for": {pollDial + "?family=4", []step{once("A api.test: 10.0.0.1; AAAA api.test: servfail", "10.0.0.1:80")}},
		"only IPv6 is asked for": {pollDial + "?family=6", []step{once("A api.test: servfail; AAAA api.test: fd00::1", "[fd00::1]:80")}},
		"one family is no error": {pollDial, []step{once("AAAA api.test: fd00::1", "[fd00::1]:80"), times(5, "AAAA api.test: fd00::1")}},
		"a name that is missing is believed after some in a row": {pollDial + "?emptyAfter=3", []step{
			once("A api.test: 10.0.0.1", "10.0.0.1:80"),
			times(2, gone, ofHost+noHost),
			once("A api.test: 10.0.0.1"), // a good answer begins the row anew
			times(2, gone, ofHost+noHost),
			once(down, ofHost+failing+"; "+of6+failing), // so does a failure
			times(2, gone, ofHost+noHost),
			once(gone, "", ofHost+noHost),
			once(gone, ofHost+noHost),
			once("A api.test: 10.0.0.1", "10.0.0.1:80"),
			once(gone, ofHost+noHost),
		}},
		"an answer without records is the same": {pollDial + "?emptyAfter=1", []step{
			once("A api.test: 10.0.0.1", "10.0.0.1:80"), once("", "", ofHost+none),
		}},
		"before a good answer there is nothing to believe": {pollDial, []step{times(5, gone, ofHost+noHost)}},
		"a failure of one family leaves its addresses": {pollDial, []step{
			once("A api.test: 10.0.0.1; AAAA api.test: fd00::1", "10.0.0.1:80 [fd00::1]:80"),
			once("A api.test: servfail; AAAA api.test: fd00::2", "10.0.0.1:80 [fd00::2]:80", ofHost+failing),
			times(5, "A api.test: servfail; AAAA api.test: fd00::2", ofHost+failing),
			times(2, "A api.test: servfail; AAAA api.test: nxdomain", ofHost+failing),
			once("A api.test: servfail; AAAA api.test: nxdomain", "10.0.0.1:80", ofHost+failing),
		}},

		"srv: a change is sent, the order of records is none": {srvDial, []step{
			once("SRV: a.test.:80 b.test.:80/1; A a.test.: 10.0.0.1; A b.test.: 10.0.0.2", "10.0.0.1:80 10.0.0.2:80"),
			once("SRV: b.test.:80/1 a.test.:80; A a.test.: 10.0.0.1; A b.test.: 10.0.0.2"),
			once("SRV: a.test.:80/0/2 b.test.:80/1; A a.test.: 10.0.0.1; A b.test.: 10.0.0.2", "10.0.0.1:80 10.0.0.2:80"),
			once("SRV: a.test.:80/2/2 b.test.:80/1; A a.test.: 10.0.0.1; A b.test.: 10.0.0.2", "10.0.0.2:80 10.0.0.1:80"),
			once("SRV: a.test.:80/2/2; A a.test.: 10.0.0.1; A b.test.: 10.0.0.2", "10.0.0.1:80"),
		}},
		"srv: a target that fails": {srvDial, []step{
			once("SRV: a.test.:80 b.test.:80; A a.test.: 10.0.0.1; A b.test.: servfail", "10.0.0.1:80", ofB+failing), // never known: left out
			once("SRV: a.test.:80 b.test.:80; A a.test.: 10.0.0.1; A b.test.: 10.0.0.2", "10.0.0.1:80 10.0.0.2:80"),
			once("SRV: a.test.:80 b.test.:80; A a.test.: 10.0.0.1; A b.test.: servfail", ofB+failing), // known: stays
			// Without SRV records the last ones hold, and targets are still looked up.
			once("SRV: servfail; A a.test.: 10.0.0.3; A b.test.: 10.0.0.2", "10.0.0.2:80 10.0.0.3:80", ofSRV+failing),
			times(5, "SRV: servfail; A a.test.: 10.0.0.3; A b.test.: 10.0.0.2", ofSRV+failing),
			// New targets that nothing is known of do not empty the list.
			times(5, "SRV: c.test.:80; A c.test.: servfail", ofC+failing),
		}},
		"srv: records that are missing": {srvDial, []step{
			once("SRV: a.test.:80; A a.test.: 10.0.0.1", "10.0.0.1:80"),
			times(2, "SRV: nxdomain; A a.test.: 10.0.0.1", ofSRV+noHost),
			once("SRV: nxdomain; A a.test.: 10.0.0.1", "", ofSRV+noHost),
		}},
		"srv: the root as target is no service": {srvDial, []step{
			once("SRV: a.test.:80; A a.test.: 10.0.0.1", "10.0.0.1:80"),
			times(2, "SRV: .:0; A a.test.: 10.0.0.1", ofSRV+none),
			once("SRV: .:0; A a.test.: 10.0.0.1", "", ofSRV+none),
		}},
		"srv: a target that is missing": {srvDial, []step{
			once("SRV: a.test.:80; A a.test.: 10.0.0.1", "10.0.0.1:80"),
			times(2, "SRV: c.test.:80", ofC+none),
			once("SRV: c.test.:80", "", ofC+none),
		}},
		"srv: malformed records are left out, and said to be there": {srvDial, []step{
			once("SRV: a.test.:80 malformed; A a.test.: 10.0.0.1; A b.test.: 10.0.0.2", "10.0.0.1:80", ofSRV+dropped),
			once("SRV: b.test.:80 malformed; A a.test.: 10.0.0.1; A b.test.: 10.0.0.2", "10.0.0.2:80", ofSRV+dropped),
			times(5, "SRV: malformed; A a.test.: 10.0.0.1; A b.test.: 10.0.0.2", ofSRV+dropped),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parsed, _, err := parseDial(t, tc.dial)
				require.NoError(t, err)
				parsed.interval, parsed.minInterval = time.Hour, 100*time.Millisecond
				c, z := &recordingConn{}, &fakeDNS{}
				z.set(tc.steps[0].zone)
				r := startPoller(parsed.params, c, parsed.lookup(source{z, z, parsed.scheme, parsed.server}))
				defer r.Close()
				for i, s := range tc.steps {
					for n := range s.times {
						if i+n > 0 {
							z.set(s.zone)
							r.ResolveNow(resolver.ResolveNowOptions{})
							time.Sleep(100 * time.Millisecond)
						}
						synctest.Wait()
						require.Equal(t, s.want, c.takeEvents(), "step %d, time %d", i, n)
					}
				}
			})
		})
	}
}

// A failure of one domain of the search list is not the end: what a lenient
// resolver finds is believed, and nothing else of what it says.
func TestSearchListThatFails(t *testing.T) {
	const ofA, ofSRV = "dns-poll: A records of api from ns.test:53: ", "dns-poll: SRV records of api from ns.test:53: "
	for name, tc := range map[string]struct {
		strict, lenient string
		want            string // the records or the error
		after           time.Duration
	}{
		"both find":                             {"A api: 10.0.0.1", "A api: 10.0.0.2", "[10.0.0.1]", 0},
		"one domain fails, another has it":      {"A api: servfail", "A api: 10.0.0.2", "[10.0.0.2]", 0},
		"one domain fails, others have nothing": {"A api: servfail", "A api: nxdomain", ofA + failing, 0},
		"one domain fails, the answer is empty": {"A api: servfail", "", ofA + failing, 0},
		"all fail":                              {"A api: servfail", "A api: servfail", ofA + failing, 0},
		"no such host is believed":              {"A api: nxdomain", "A api: 10.0.0.2", ofA + noHost, 0},
		"an empty answer is believed":           {"", "A api: 10.0.0.2", ofA + none, 0},
		"one domain is silent":                  {"A api: silent", "A api: 10.0.0.2", "[10.0.0.2]", 5 * time.Second},
		"silent, others have nothing":           {"A api: silent", "A api: nxdomain", ofA + "no answer in time", 10 * time.Second},
		"all are silent":                        {"A api: silent", "A api: silent", ofA + "no answer in time", 10 * time.Second},
		"fails, then silent":                    {"A api: servfail", "A api: silent", ofA + failing, 10 * time.Second},
		"records: one domain fails":             {"SRV: servfail", "SRV: a.test.:80", "[a.test.]", 0},
		"records: all fail":                     {"SRV: servfail", "SRV: nxdomain", ofSRV + failing, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				strict, lenient := &fakeDNS{}, &fakeDNS{}
				strict.set(tc.strict)
				lenient.set(tc.lenient)
				s, began := source{strict, lenient, PollScheme, "ns.test:53"}, time.Now()
				var got string
				var err error
				if strings.HasPrefix(tc.strict, "SRV") {
					var records []*net.SRV
					if records, err = s.records(ctx, "api"); err == nil {
						got = fmt.Sprint([]string{records[0].Target})
					}
				} else {
					var addrs []netip.Addr
					addrs, err = s.addrs(ctx, "ip4", "api")
					got = fmt.Sprint(addrs)
				}
				if err != nil {
					require.False(t, tc.strict != "" && strings.Contains(tc.want, failing) && isNotFound(err))
					got = err.Error()
				}
				require.Equal(t, tc.want, got)
				require.Equal(t, tc.after, time.Since(began))
			})
		})
	}
}

// What is known of a target goes with its records, and each is asked for once.
func TestTargetsAreForgotten(t *testing.T) {
	z := &fakeDNS{}
	l := &srvLookup{hosts: &hosts{source: source{z, z, SRVScheme, ""}, params: defaults()}, name: "_grpc._tcp.api.test"}
	for i := range 100 {
		target := fmt.Sprint("pod-", i, ".test.")
		z.set(fmt.Sprintf("SRV: %[1]s:80 %[1]s:81; A %[1]s: 10.0.0.1", target))
		require.Len(t, l.lookup(t.Context()).endpoints, 2)
		require.Len(t, l.byName, 1)
		require.Equal(t, 1, z.asked["A "+target])
	}
}

func TestWhatErrorsSay(t *testing.T) {
	const ofA = "dns-poll: A records of api.test from "
	for want, given := range map[string]struct {
		server string
		err    error
	}{
		ofA + "ns.test:53: refused":               {"ns.test:53", &net.DNSError{Err: "refused", Server: "10.0.0.1:53"}},
		ofA + "10.0.0.1:53: refused":              {"", &net.DNSError{Err: "refused", Server: "10.0.0.1:53"}},
		ofA + "the system's resolver: refused":    {"", &net.DNSError{Err: "refused"}},
		ofA + "ns.test:53: address x: unsuitable": {"ns.test:53", &net.AddrError{Err: "unsuitable", Addr: "x"}},
		ofA + "ns.test:53: no answer in time":     {"ns.test:53", &net.DNSError{Err: "i/o timeout", IsTimeout: true}},
		ofA + "ns.test:53: odd":                   {"ns.test:53", fmt.Errorf("odd")},
	} {
		err := source{scheme: PollScheme, server: given.server}.failureOf(t.Context(), "A", "api.test", given.err)
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
	for n, want := range []string{"a", "a; b", "a; b; c", "a; b; c; and 1 more", "a; b; c; and 2 more"} {
		errs = append(errs, errors.New(string(rune('a'+n))))
		require.EqualError(t, joinErrors(errs), want)
	}
}
