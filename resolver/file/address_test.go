package file

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddresses(t *testing.T) {
	for given, want := range map[string]string{
		"10.0.0.1:443":                 "10.0.0.1:443",
		"10.0.0.1:0443":                "10.0.0.1:443",
		"10.0.0.1:1":                   "10.0.0.1:1",
		"10.0.0.1:65535":               "10.0.0.1:65535",
		"[::1]:1980":                   "[::1]:1980",
		"[2001:DB8:0::1]:443":          "[2001:db8::1]:443",
		"[fe80::1%eth0]:443":           "[fe80::1%eth0]:443",
		"[::ffff:10.0.0.1]:443":        "[::ffff:10.0.0.1]:443",
		"db-1.example:443":             "db-1.example:443",
		"DB-1.Example.:443":            "db-1.example.:443",
		"my_service:443":               "my_service:443",
		"localhost:443":                "localhost:443",
		"7a:443":                       "7a:443",
		"unix:/run/a.sock":             "unix:///run/a.sock",
		"unix:///run/a.sock":           "unix:///run/a.sock",
		"unix:///run/a b%?#.sock":      "unix:///run/a%20b%25%3F%23.sock",
		"unix:////run/a":               "unix:////run/a",
		"unix:a.sock":                  "unix:a.sock",
		"unix:dir/a.sock":              "unix:dir/a.sock",
		"unix-abstract:a/b":            "unix:@a/b",
		"unix:@a":                      "unix:@a",
		strings.Repeat("a", 63) + ":1": strings.Repeat("a", 63) + ":1",
	} {
		got, ok := addressOf(given)
		require.True(t, ok, given)
		require.Equal(t, want, got, given)
		again, ok := addressOf(got)
		if !strings.Contains(got, "%2") {
			require.True(t, ok, got)
			require.Equal(t, got, again, "the one form is its own")
		}
	}
	for _, given := range []string{
		"", ":", ":443", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:-1", "10.0.0.1:+1", "10.0.0.1:http", "10.0.0.1: 1",
		"10.0.0:1", "10.0.0.256:1", "10.0.0.01:1", "1:2", "::1", "::1:1980", "[::1]", "[::1]:", "[]:1", "[10.0.0.1]:1", "[a.example]:1",
		"[fe80::1%]:1", "[fe80::1%a b]:1", "fe80::1%eth0:1",
		"a b:1", "a..b:1", ".a:1", "-:x", "ä:1", "a\n:1", "user@a:1", "a/b:1", "http://a:1", "dns:///a:1",
		strings.Repeat("a", 64) + ":1", strings.Repeat("a.", 127) + "a:1",
		"unix:", "unix://", "unix://a/b", "unix:@", "unix:/a\x00", "unix:a\nb", "unix:a:/b", "unix-abstract:", "unix-abstract:a:/b", "unix-abstract:\x00a",
		"UNIX:/a",
	} {
		_, ok := addressOf(given)
		require.False(t, ok, given)
	}
}

func TestNames(t *testing.T) {
	for _, s := range []string{"a.example", "a.example:443", "A", "10.0.0.1", "10.0.0.1:443", "[::1]", "[::1]:443", "a_b"} {
		require.True(t, isName(s), s)
	}
	for _, s := range []string{"", ":443", "a:", "a:0", "a:x", "::1", "[::1", "[a]", "[fe80::1%eth0]", "[fe80::1%eth0]:1", "a/b", "a b", "*.example", "u@a", "https://a", "10.0.0.256", "[]", "["} {
		require.False(t, isName(s), s)
	}
	for addr, want := range map[string]string{
		"a.example:443":      "a.example:443",
		"10.0.0.1:1":         "10.0.0.1:1",
		"[::1]:1":            "[::1]:1",
		"[fe80::1%eth0]:443": "[fe80::1]:443",
		"unix:///run/a":      "localhost",
		"unix:@a":            "localhost",
	} {
		require.Equal(t, want, nameOf(addr))
		require.True(t, isName(want), want)
	}
}
