package target

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func urlOf(t testing.TB, s string) url.URL {
	t.Helper()
	u, err := url.Parse(s)
	require.NoError(t, err)
	return *u
}

func TestTargets(t *testing.T) {
	defaults := Target{Namespace: "own"}
	for s, want := range map[string]Target{
		"k8s:///chat":                      {Service: "chat", Namespace: "own"},
		"k8s:///chat:grpc":                 {Service: "chat", Namespace: "own", Port: "grpc"},
		"k8s:///chat.shop":                 {Service: "chat", Namespace: "shop"},
		"k8s:///chat.shop:50051":           {Service: "chat", Namespace: "shop", Port: "50051", Number: 50051},
		"k8s:///chat.shop:0050051":         {Service: "chat", Namespace: "shop", Port: "50051", Number: 50051},
		"k8s:///chat.shop:65535":           {Service: "chat", Namespace: "shop", Port: "65535", Number: 65535},
		"k8s:///chat.shop:grpc?zone=eu-1a": {Service: "chat", Namespace: "shop", Port: "grpc", Zone: "eu-1a"},
		"k8s:///chat-2.shop-2:8-grpc":      {Service: "chat-2", Namespace: "shop-2", Port: "8-grpc"},
	} {
		got, err := Parse(urlOf(t, s), defaults)
		require.NoError(t, err, s)
		require.Equal(t, want, got, s)
	}
	got, err := Parse(urlOf(t, "k8s:///chat"), Target{Namespace: "own", Zone: "eu-1b"})
	require.NoError(t, err)
	require.Equal(t, Target{Service: "chat", Namespace: "own", Zone: "eu-1b"}, got)
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
		_, err := Parse(urlOf(t, s), Target{Namespace: "own"})
		require.ErrorContains(t, err, want, s)
		require.ErrorContains(t, err, "k8s: target ", s)
	}
}

var longName = strings.Repeat("a", 64)

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
		first, err := Parse(*u, Target{Namespace: "own"})
		if err != nil {
			return
		}
		again, err := Parse(urlOf(t, first.String()), Target{Namespace: "other", Zone: first.Zone})
		require.NoError(t, err)
		require.Equal(t, first, again)
	})
}
