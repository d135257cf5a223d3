package file

import (
	"bytes"
	"encoding/json"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// Whatever a file holds, it yields valid endpoints or one error with its line.
func FuzzParse(f *testing.F) {
	for _, c := range badFiles {
		if len(c.file) < 1<<15 {
			f.Add([]byte(c.file))
		}
	}
	f.Add([]byte(fileAB))
	f.Add([]byte(`{"resourceKey":"k","authority":"a:1","serviceConfig":{"a":[1]},"nodes":[{"addresses":["[::1%lo]:1","unix:/a b"],"weight":0,"priority":1,"id":"i","serverName":"[::1]"}]}`))
	f.Add([]byte("{\"nodes\":[{\"address\":\"unix:\\/a\",\n\"id\":\"\\ud83d\\ude00\\\"\u2028\"}]}"))
	f.Add([]byte("nodes:\n- &a {address: unix-abstract:a, weight: &w 0x10}\n- {address: h:1, weight: *w}\nserviceConfig: {<<: {a: 2001-01-01}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := parseList(data)
		if err != nil {
			require.Nil(t, l)
			require.NotEmpty(t, err.Error())
			require.NotContains(t, err.Error(), "\n")
			// YAML knows more line ends than one.
			require.GreaterOrEqual(t, lineOf(err), 1, err)
			require.LessOrEqual(t, lineOf(err), 2+strings.Count(strings.NewReplacer("\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(string(data)), "\n"), err)
			return
		}
		parse := func(js string) *serviceconfig.ParseResult {
			require.True(t, json.Valid([]byte(js)), js)
			return &serviceconfig.ParseResult{}
		}
		s := source{path: "/nodes.yaml"}.state(l, parse)
		key := lcresolver.ResourceKey(s)
		require.NotEmpty(t, key)
		require.LessOrEqual(t, len(key), maxResourceKey)
		require.NotNil(t, s.Endpoints)
		seen := map[string]bool{}
		for _, ep := range s.Endpoints {
			require.NotEmpty(t, ep.Addresses)
			require.LessOrEqual(t, lcresolver.Weight(ep), uint32(lcresolver.MaxWeight))
			if id := lcresolver.ID(ep); id != "" {
				require.False(t, seen["id "+id], id)
				seen["id "+id] = true
			}
			for _, a := range ep.Addresses {
				require.False(t, seen[a.Addr], a.Addr)
				seen[a.Addr] = true
				require.True(t, isName(a.ServerName), a.ServerName)
				dialable(t, a.Addr)
			}
		}
		again, err := parseList(bytes.Clone(data))
		require.NoError(t, err)
		require.Equal(t, l, again)
	})
}

// dialable checks an address as gRPC's dialer reads it.
func dialable(t *testing.T, addr string) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		if strings.Contains(addr, ":/") {
			u, err := url.Parse(addr)
			require.NoError(t, err, addr)
			require.Equal(t, "unix", u.Scheme)
			require.Empty(t, u.Host+u.RawQuery+u.Fragment, addr)
			path = u.Path
			require.True(t, strings.HasPrefix(path, "/"), addr)
		}
		require.NotEmpty(t, path)
		return
	}
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err, addr)
	require.NotEmpty(t, host)
	n, err := strconv.Atoi(port)
	require.NoError(t, err, addr)
	require.True(t, 0 < n && n < 65536, addr)
	require.NotContains(t, addr, " ")
}

// Whatever a target is, it names one absolute path or is refused with a reason.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{
		"///etc/app/nodes.yaml", "//host/etc/nodes.yaml", "//u:p@host/", "nodes.yaml", "../a%20b", "./a%zz", "/etc/", "", "/", "//", "///",
		"///a?b=c", "///a?", "///a#b", "///a%00b", "////a", "///C:/a", "/%2e%2e/a", "a\\b", "%", "///ä",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := url.Parse(Scheme + ":" + s)
		if err != nil {
			return // gRPC takes it as no target of this scheme
		}
		path, err := pathOf(resolver.Target{URL: *u})
		if err != nil {
			require.Empty(t, path)
			require.Contains(t, err.Error(), "want nodes:///path/to/nodes.yaml or nodes:relative/nodes.yaml")
			_, err = builder{}.Build(resolver.Target{URL: *u}, nil, resolver.BuildOptions{})
			require.Error(t, err)
			require.Equal(t, "localhost", builder{}.OverrideAuthority(resolver.Target{URL: *u}))
			return
		}
		require.True(t, filepath.IsAbs(path), path)
		require.Equal(t, filepath.Clean(path), path)
		require.NotContains(t, path, "\x00")
		require.Empty(t, u.Host)
		require.Empty(t, u.RawQuery)
		require.Empty(t, u.Fragment)
	})
}
