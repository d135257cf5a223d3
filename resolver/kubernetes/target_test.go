package kubernetes

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
)

func targetOf(t testing.TB, s string) resolver.Target {
	t.Helper()
	u, err := url.Parse(s)
	require.NoError(t, err)
	return resolver.Target{URL: *u}
}

func TestTargets(t *testing.T) {
	opts := Options{Namespace: "own"}
	for s, want := range map[string]target{
		"k8s:///chat":                      {service: "chat", namespace: "own"},
		"k8s:///chat:grpc":                 {service: "chat", namespace: "own", port: "grpc"},
		"k8s:///chat.shop":                 {service: "chat", namespace: "shop"},
		"k8s:///chat.shop:50051":           {service: "chat", namespace: "shop", port: "50051", number: 50051},
		"k8s:///chat.shop:0050051":         {service: "chat", namespace: "shop", port: "50051", number: 50051},
		"k8s:///chat.shop:65535":           {service: "chat", namespace: "shop", port: "65535", number: 65535},
		"k8s:///chat.shop:grpc?zone=eu-1a": {service: "chat", namespace: "shop", port: "grpc", zone: "eu-1a"},
		"k8s:///chat-2.shop-2:8-grpc":      {service: "chat-2", namespace: "shop-2", port: "8-grpc"},
	} {
		got, err := parse(targetOf(t, s), opts)
		require.NoError(t, err, s)
		require.Equal(t, want, got, s)
	}
	got, err := parse(targetOf(t, "k8s:///chat"), Options{Namespace: "own", Zone: "eu-1b"})
	require.NoError(t, err)
	require.Equal(t, target{service: "chat", namespace: "own", zone: "eu-1b"}, got)
	require.Equal(t, "k8s:///chat.own", got.String())
}

// Every kind of bad target is refused with what is wrong, its value and what is
// allowed.
func TestBadTargets(t *testing.T) {
	for s, want := range map[string]string{
		"k8s:///":                        `service "": want 1 to 63 lower case letters`,
		"k8s:///:grpc":                   `service "": want`,
		"k8s:///Chat.shop":               `service "Chat": want`,
		"k8s:///chat_2":                  `service "chat_2": want`,
		"k8s:///-chat":                   `service "-chat": want`,
		"k8s:///" + longName:             `service "` + longName + `": want`,
		"k8s:///chat.":                   `namespace "": want`,
		"k8s:///chat.Shop":               `namespace "Shop": want`,
		"k8s:///chat.shop.svc":           `namespace "shop.svc": want`,
		"k8s:///chat.shop/x":             `namespace "shop/x": want`,
		"k8s:///chat.shop:":              `port "": want a number from 1 to 65535, or the name of a port`,
		"k8s:///chat.shop:0":             `port "0": want a number`,
		"k8s:///chat.shop:65536":         `port "65536": want a number`,
		"k8s:///chat.shop:-1":            `port "-1": want a number`,
		"k8s:///chat.shop:gRPC":          `port "gRPC": want a number`,
		"k8s:///chat.shop:1:2":           `port "1:2": want a number`,
		"k8s:///chat.shop?zone=":         `parameter zone: value "": want the name of a zone`,
		"k8s:///chat.shop?zone=a%20b":    `parameter zone: value "a b": want the name of a zone`,
		"k8s:///chat.shop?zone=a&zone=b": `parameter zone: values ["a" "b"]: want one value`,
		"k8s:///chat.shop?zones=a":       `parameter zones: value "a": no such parameter, want zone`,
		"k8s:///chat.shop?%zz":           `parameters "%zz": `,
		"k8s:///chat.shop#x":             `has a fragment, "x", want none`,
		"k8s://api.example/chat.shop":    `has an authority, "api.example", want none`,
		"k8s://me@/chat.shop":            `has a user, want none`,
		"k8s:chat.shop":                  `has no slashes after the scheme: want k8s:///service`,
	} {
		_, err := parse(targetOf(t, s), Options{Namespace: "own"})
		require.ErrorContains(t, err, want, s)
		require.ErrorContains(t, err, "k8s: target ", s)
	}
}

var longName = strings.Repeat("a", 64)

// What certificates are checked against is what was dialled, and always valid.
func TestAuthorities(t *testing.T) {
	for s, want := range map[string]string{
		"k8s:///chat.shop:grpc?zone=a": "chat.shop",
		"k8s:///chat:50051":            "chat",
		"k8s:///Ch at":                 "localhost",
		"k8s:///":                      "localhost",
	} {
		require.Equal(t, want, (&builder{}).OverrideAuthority(targetOf(t, s)), s)
	}
}

// FuzzTarget: no target panics, and one that is taken has a spelling that means
// the same.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"k8s:///chat.shop:grpc?zone=eu-1a", "k8s:///chat:50051", "k8s:chat", "k8s://a/b", "k8s:///a.b.c:1:2#x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := url.Parse(s)
		if err != nil {
			return
		}
		(&builder{}).OverrideAuthority(resolver.Target{URL: *u})
		first, err := parse(resolver.Target{URL: *u}, Options{Namespace: "own"})
		if err != nil {
			return
		}
		again, err := parse(targetOf(t, first.String()), Options{Namespace: "other", Zone: first.zone})
		require.NoError(t, err)
		require.Equal(t, first, again)
	})
}
