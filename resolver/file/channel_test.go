package file

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// A node that joins the file takes the next streams. Open ones stay where they
// are, also those of a node that leaves, and also when the list becomes empty.
func TestScaleOut(t *testing.T) {
	e := newEnv(t)
	nodes := e.nodes("a", "b", "c")
	a, b, c := nodes[0], nodes[1], nodes[2]
	e.put(fileOf(a, b))
	ch := e.dial()
	e.ready(a, b)
	old, by := ch.openStreams(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
	e.put(fileOf(a, b, c))
	e.ready(a, b, c)
	next, by := ch.openStreams(2)
	require.Equal(t, map[string]int{"c": 2}, by)
	e.put(fileOf(b, c))
	e.ready(b, c)
	_, by = ch.openStreams(2)
	require.Equal(t, map[string]int{"b": 1, "c": 1}, by)
	requireAlive(t, append(old, next...))
	require.Equal(t, []int{1, 1, 1}, []int{a.Conns(), b.Conns(), c.Conns()})

	e.put(fileOf())
	e.wait("failure", func() bool {
		_, err := ch.call()
		return err != nil && status.Convert(err).Message() == "name resolver produced zero addresses"
	})
	requireAlive(t, append(old, next...))
	e.put(fileOf(a))
	ch.waitForAnswer("a")
}

// Weight and priority change on the connections that there are.
func TestWeightAndPriority(t *testing.T) {
	e := newEnv(t)
	nodes := e.nodes("a", "b")
	var ch channel
	var all []*leastconntest.Stream
	for i, tc := range []struct {
		weight, priority uint32
		streams          int
		want             map[string]int
	}{
		{3, 0, 8, map[string]int{"a": 6, "b": 2}},
		{1, 0, 4, map[string]int{"b": 4}},
		{0, 0, 2, map[string]int{"b": 2}}, // a drains
		{1, 1, 2, map[string]int{"b": 2}}, // b is the highest level
	} {
		e.put(fmt.Sprintf("nodes:\n  - {address: %q, weight: %d, priority: %d}\n  - address: %q\n", nodes[0].Addr(), tc.weight, tc.priority, nodes[1].Addr()))
		if i == 0 {
			ch = e.dial()
		}
		e.wait("weight and priority", func() bool {
			for _, ep := range e.endpoints("nodes://" + e.path) {
				if ep.Addresses[0] == nodes[0].Addr() && len(ep.Members) == 1 {
					m := ep.Members[0]
					return m.Ready && m.Weight == tc.weight && m.Priority == tc.priority
				}
			}
			return false
		})
		e.ready(nodes...)
		streams, by := ch.openStreams(tc.streams)
		require.Equal(t, tc.want, by, i)
		all = append(all, streams...)
	}
	requireAlive(t, all)
	require.Equal(t, []int{1, 1}, []int{nodes[0].Conns(), nodes[1].Conns()})
}

// RPCs fail with what is wrong until it is mended. Those that wait are served
// then.
func TestNoListAtStart(t *testing.T) {
	e := newEnv(t, "etc", "app")
	node := e.nodes("a")[0]
	ch := e.dial()
	fails := func(ch channel, text string) {
		t.Helper()
		_, err := ch.call()
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.ErrorContains(t, err, "nodes: "+e.path+text)
	}
	fails(ch, noFile)
	waited := make(chan error)
	go func() {
		_, err := ch.call(grpc.WaitForReady(true))
		waited <- err
	}()
	require.NoError(t, os.MkdirAll(filepath.Dir(e.path), 0o700))
	e.put("nodes:\n  - address: ::1:1980\n")
	other := e.dial()
	fails(other, `:2: address: value "::1:1980": want host:port or [IPv6]:port`)
	e.put(fileOf(node))
	require.NoError(t, <-waited)
	other.waitForAnswer("a")
}

// Files with one resource key share their load. A relative target follows the
// file in the working directory, whose key is that of the absolute target.
func TestSharedLoad(t *testing.T) {
	one, two := newEnv(t, "my conf"), newEnv(t)
	nodes := one.nodes("a", "b")
	dir := filepath.Dir(one.path)
	require.NoError(t, os.Mkdir(dir, 0o700))
	t.Chdir(filepath.Dir(dir))
	for name, tc := range map[string]struct {
		head, key string
		dial      func() []channel
	}{
		"resource key": {"resourceKey: orders of " + t.Name() + "\n", "orders of " + t.Name(), func() []channel { return []channel{one.dial(), two.dial()} }},
		"relative target": {"", "nodes://" + one.path, func() []channel {
			return []channel{one.dialTarget("nodes:my%20conf/nodes.yaml"), one.dialTarget("nodes://" + filepath.Dir(dir) + "/my%20conf/nodes.yaml")}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			one.put(tc.head + fileOf(nodes...))
			two.put(tc.head + fileOf(nodes...))
			by := map[string]int{}
			channels := tc.dial()
			one.waitForReady(tc.key, len(channels), nodes...)
			for _, ch := range channels {
				defer ch.Close()
				_, more := ch.openStreams(1)
				for name, n := range more {
					by[name] += n
				}
			}
			require.Equal(t, map[string]int{"a": 1, "b": 1}, by)
		})
	}
}

// A service config in the file selects the policy.
func TestPolicyFromTheFile(t *testing.T) {
	e := newEnv(t)
	nodes := e.nodes("a", "b", "c")
	e.put("serviceConfig: {loadBalancingConfig: [{least_conn: {}}]}\n" + fileOf(nodes[:2]...))
	ch := e.dial(grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"pick_first":{}}]}`))
	e.ready(nodes[:2]...)
	streams, by := ch.openStreams(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
	// One that is refused later does not hold up the nodes.
	e.put("serviceConfig: {loadBalancingConfig: [{least_conn: {priorityFailover: 5}}]}\n" + fileOf(nodes...))
	e.ready(nodes...)
	_, by = ch.openStreams(2)
	require.Equal(t, map[string]int{"c": 2}, by)
	requireAlive(t, streams)
	// At the start there is nothing else to use.
	fresh := e.dial()
	_, err := fresh.call()
	require.ErrorContains(t, err, fmt.Sprintf("nodes: %s:1: serviceConfig: error parsing config for policy \"least_conn\": least_conn: field priorityFailover: value 5: want", e.path))
	e.put("serviceConfig: {loadBalancingConfig: [{least_conn: {priorityFailover: 5s}}]}\n" + fileOf(nodes[0]))
	fresh.waitForAnswer("a")
}

// A channel that goes idle lets go of the file and reads it anew when it wakes.
func TestIdle(t *testing.T) {
	e := newEnv(t)
	nodes := e.nodes("a", "b")
	e.put(fileOf(nodes[0]))
	ch := e.dial(grpc.WithIdleTimeout(50 * time.Millisecond))
	ch.waitForAnswer("a")
	e.wait("idle", func() bool { return ch.GetState() == connectivity.Idle })
	e.put(fileOf(nodes[1]))
	name, err := ch.call()
	require.NoError(t, err)
	require.Equal(t, "b", name)
}

// A target that names no file, or more, is refused with what is allowed.
func TestBadTargets(t *testing.T) {
	for target, text := range map[string]string{
		"nodes://etc/app/nodes.yaml":     `nodes: target "nodes://etc/app/nodes.yaml": there is an authority, "etc": want nodes:///path/to/nodes.yaml or nodes:relative/nodes.yaml`,
		"nodes://u@etc/app/nodes.yaml":   `there is an authority, "u@etc"`,
		"nodes:///etc/nodes.yaml?poll=1": `there is a query, "poll=1"`,
		"nodes:///etc/nodes.yaml?":       `there is a query, ""`,
		"nodes:///etc/nodes.yaml#top":    `there is a fragment, "top"`,
		"nodes:///":                      "it names no file",
		"nodes:":                         "it names no file",
		"nodes:///etc/":                  "it names no file",
		"nodes:///etc/a%00b":             "it names no file",
		"nodes:a%zz":                     `invalid URL escape "%zz"`,
	} {
		u, err := url.Parse(target)
		require.NoError(t, err)
		_, err = builder{}.Build(resolver.Target{URL: *u}, nil, resolver.BuildOptions{})
		require.ErrorContains(t, err, text, target)
	}
	_, err := newEnv(t).dialTarget("nodes:///etc/").call()
	require.ErrorContains(t, err, "it names no file")
}
