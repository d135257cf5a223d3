package dns

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
)

// parseDial reads a dial target as gRPC does.
func parseDial(t *testing.T, dial string) (target, resolver.Target, error) {
	t.Helper()
	u, err := url.Parse(dial)
	require.NoError(t, err)
	parsed, err := parse(u.Scheme, resolver.Target{URL: *u})
	return parsed, resolver.Target{URL: *u}, err
}

func TestTargets(t *testing.T) {
	for dial, want := range map[string]struct{ server, name, literal, authority string }{
		"dns-poll:///api.test:8080":               {"", "api.test", ":8080", "api.test"},
		"dns-poll:///api.test":                    {"", "api.test", ":443", "api.test"},
		"dns-poll:///Api.test.":                   {"", "Api.test.", ":443", "Api.test"},
		"dns-poll:api.test:8080?interval=1s":      {"", "api.test", ":8080", "api.test"},
		"dns-poll:///under_score.test":            {"", "under_score.test", ":443", "under_score.test"},
		"dns-poll:///:8080":                       {"", "localhost", ":8080", "localhost"},
		"dns-poll:///10.0.0.1":                    {"", "", "10.0.0.1:443", "10.0.0.1"},
		"dns-poll:///10.0.0.1:080":                {"", "", "10.0.0.1:80", "10.0.0.1"},
		"dns-poll:///10.0.0.1:80?family=4":        {"", "", "10.0.0.1:80", "10.0.0.1"},
		"dns-poll:///[::1]":                       {"", "", "[::1]:443", "[::1]"},
		"dns-poll:///[0:0::1]:80":                 {"", "", "[::1]:80", "[0:0::1]"},
		"dns-poll:[::1]:80":                       {"", "", "[::1]:80", "[::1]"},
		"dns-poll:///[::ffff:10.0.0.1]:80":        {"", "", "10.0.0.1:80", "[::ffff:10.0.0.1]"},
		"dns-poll:///[fe80::1%25eth0]:80":         {"", "", "[fe80::1%eth0]:80", "[fe80::1]"},
		"dns-poll://10.0.0.53/api.test":           {"10.0.0.53:53", "api.test", ":443", "api.test"},
		"dns-poll://10.0.0.53:5353/api.test":      {"10.0.0.53:5353", "api.test", ":443", "api.test"},
		"dns-poll://ns.test:5353/api.test":        {"ns.test:5353", "api.test", ":443", "api.test"},
		"dns-poll://[::1]/api.test":               {"[::1]:53", "api.test", ":443", "api.test"},
		"dns-poll://[::1]:5353/api.test":          {"[::1]:5353", "api.test", ":443", "api.test"},
		"dns-poll://[fe80::1%25lo]:53/api.test":   {"[fe80::1%lo]:53", "api.test", ":443", "api.test"},
		"srv:///_grpc._tcp.api.test":              {"", "_grpc._tcp.api.test", ":0", "api.test"},
		"srv:_grpc._tcp.api.test":                 {"", "_grpc._tcp.api.test", ":0", "api.test"},
		"srv://10.0.0.53/_grpc._tcp.api.test.":    {"10.0.0.53:53", "_grpc._tcp.api.test.", ":0", "api.test"},
		"srv:///_a-b._udp._x.test?emptyAfter=1":   {"", "_a-b._udp._x.test", ":0", "_x.test"},
		"srv:///_grpc._tcp.localhost?interval=1h": {"", "_grpc._tcp.localhost", ":0", "localhost"},
	} {
		got, dialled, err := parseDial(t, dial)
		require.NoError(t, err, dial)
		literal := got.literal.String()
		if !got.literal.IsValid() {
			literal = ":" + strconv.Itoa(int(got.port))
		}
		require.Equal(t, want.server, got.server, dial)
		require.Equal(t, want.name, got.name, dial)
		require.Equal(t, want.literal, literal, dial)
		require.Equal(t, want.authority, builder(got.scheme).OverrideAuthority(dialled), dial)
	}
}

func TestTargetsThatAreRefused(t *testing.T) {
	for dial, want := range map[string]string{
		"dns-poll:///":                                   "has no name to look up",
		"dns-poll://10.0.0.53":                           "has no name to look up",
		"dns-poll:///api.test:":                          `port "": want a number from 1 to 65535`,
		"dns-poll:///api.test:0":                         `port "0": want a number from 1 to 65535`,
		"dns-poll:///api.test:65536":                     `port "65536": want a number from 1 to 65535`,
		"dns-poll:///api.test:https":                     `port "https": want a number from 1 to 65535`,
		"dns-poll:///api.test:+80":                       `port "+80": want a number from 1 to 65535`,
		"dns-poll:///::1":                                `address "::1": want brackets around an IPv6 address, such as [::1]:443`,
		"dns-poll:///::1:1980":                           `address "::1:1980": want brackets around an IPv6 address`,
		"dns-poll:///fe80::1:x":                          `address "fe80::1:x": want host, host:port, [IPv6] or [IPv6]:port`,
		"dns-poll:///[::1":                               `address "[::1": want host, host:port, [IPv6] or [IPv6]:port`,
		"dns-poll:///[api.test]:80":                      `"api.test" is in brackets`,
		"dns-poll:///[::x]:80":                           `"::x" is neither a host name nor an IP address`,
		"dns-poll:///10.0.0.256:80":                      `"10.0.0.256" is neither a host name nor an IP address`,
		"dns-poll:///api.test/more":                      `"api.test/more" is neither a host name nor an IP address`,
		"dns-poll:///api..test":                          `"api..test" is neither a host name nor an IP address`,
		"dns-poll:///a%20b":                              `"a b" is neither a host name nor an IP address`,
		"dns-poll:///" + strings.Repeat("a", 64):         `is neither a host name nor an IP address`,
		"dns-poll:///" + strings.Repeat("a.", 127) + "a": `is neither a host name nor an IP address`,
		"dns-poll://10.0.0.53:0/api.test":                `server "10.0.0.53:0": port "0": want a number from 1 to 65535`,
		"dns-poll://a..b/api.test":                       `server "a..b": "a..b" is neither a host name nor an IP address`,
		"dns-poll://me@10.0.0.53/api.test":               "has a user, want none",
		"dns-poll:///api.test#part":                      `has a fragment "part", want none`,
		"dns-poll:///10.0.0.1?family=6":                  `parameter family: value "6": 10.0.0.1 is not of that family`,
		"dns-poll:///[::1]?family=4":                     `parameter family: value "4": ::1 is not of that family`,
		"srv:///_grpc._tcp.api.test:443":                 `name "_grpc._tcp.api.test:443": want _service._proto.name, such as _grpc._tcp.example.com`,
		"srv:///api.test":                                `name "api.test": want _service._proto.name`,
		"srv:///_grpc.tcp.api.test":                      `name "_grpc.tcp.api.test": want _service._proto.name`,
		"srv:///_._tcp.api.test":                         `name "_._tcp.api.test": want _service._proto.name`,
		"srv:///_grpc._tcp.":                             `name "_grpc._tcp.": want _service._proto.name`,
	} {
		_, dialled, err := parseDial(t, dial)
		require.ErrorContains(t, err, want, dial)
		require.ErrorContains(t, err, strconv.Quote(dialled.URL.Redacted()), dial)
		builder(dialled.URL.Scheme).OverrideAuthority(dialled)
	}
}

func TestParameters(t *testing.T) {
	got, err := parseParams("")
	require.NoError(t, err)
	require.Equal(t, params{interval: 10 * time.Second, minInterval: 2 * time.Second, timeout: 10 * time.Second, emptyAfter: 3}, got)

	got, err = parseParams("interval=100ms&minInterval=1h&timeout=1m&family=6&emptyAfter=1000")
	require.NoError(t, err)
	require.Equal(t, params{interval: 100 * time.Millisecond, minInterval: time.Hour, timeout: time.Minute, family: 6, emptyAfter: 1000}, got)
}

func TestParametersThatAreRefused(t *testing.T) {
	const upToHour = "want a duration from 100ms to 1h, such as 10s"
	for query, want := range map[string]string{
		"interval=99ms":            `parameter interval: value "99ms": ` + upToHour,
		"interval=1h1ns":           `parameter interval: value "1h1ns": ` + upToHour,
		"interval=10":              `parameter interval: value "10": ` + upToHour,
		"interval=":                `parameter interval: value "": ` + upToHour,
		"interval":                 `parameter interval: value "": ` + upToHour,
		"interval=-10s":            `parameter interval: value "-10s": ` + upToHour,
		"minInterval=0s":           `parameter minInterval: value "0s": ` + upToHour,
		"timeout=61s":              `parameter timeout: value "61s": want a duration from 100ms to 1m, such as 10s`,
		"family=5":                 `parameter family: value "5": want 4 or 6`,
		"family=":                  `parameter family: value "": want 4 or 6`,
		"emptyAfter=0":             `parameter emptyAfter: value "0": want a whole number from 1 to 1000`,
		"emptyAfter=1001":          `parameter emptyAfter: value "1001": want a whole number from 1 to 1000`,
		"emptyAfter=1.5":           `parameter emptyAfter: value "1.5": want a whole number from 1 to 1000`,
		"Interval=10s":             `parameter Interval: value "10s": no such parameter, want one of emptyAfter, family, interval, minInterval, timeout`,
		"interval=10s&interval=1s": `parameter interval: values ["10s" "1s"]: want one value`,
		"interval=%zz":             `parameters "interval=%zz": invalid URL escape`,
	} {
		_, err := parseParams(query)
		require.ErrorContains(t, err, want, query)
	}
}

// A target that is taken can be asked for, and none makes the parser panic.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{
		"dns-poll:///api.test:8080?interval=1s&family=4", "dns-poll://[::1]:5353/[fe80::1%25lo]:80", "dns-poll::80",
		"srv://ns.test/_grpc._tcp.api.test.?emptyAfter=2&timeout=1s", "dns-poll:///10.0.0.256", "srv:///_a._b.c%00", "dns-poll:///[::]]:1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, dial string) {
		u, err := url.Parse(dial)
		if err != nil {
			return
		}
		for _, scheme := range []string{PollScheme, SRVScheme} {
			dialled := resolver.Target{URL: *u}
			authority := builder(scheme).OverrideAuthority(dialled)
			require.Empty(t, strings.Trim(authority, inAuthority+"%"))
			got, err := parse(scheme, dialled)
			if err != nil {
				continue
			}
			require.NotEmpty(t, authority)
			require.Equal(t, got.name == "", got.literal.IsValid())
			require.True(t, got.name == "" || isName(got.name))
			require.Equal(t, scheme == PollScheme && got.name != "", got.port != 0 && !got.literal.IsValid())
			if got.server != "" {
				host, port, err := net.SplitHostPort(got.server)
				require.NoError(t, err)
				_, err = strconv.ParseUint(port, 10, 16)
				require.NoError(t, err)
				_, err = netip.ParseAddr(host)
				require.True(t, err == nil || isName(host))
			}
			for _, d := range []time.Duration{got.interval, got.minInterval, got.timeout} {
				require.True(t, d >= 100*time.Millisecond && d <= time.Hour)
			}
			require.Contains(t, []int{0, 4, 6}, got.family)
			require.True(t, got.emptyAfter >= 1 && got.emptyAfter <= 1000)
		}
	})
}
