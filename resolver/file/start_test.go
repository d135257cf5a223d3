package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

// RPCs fail with what is missing, and those that wait are served when it comes.
func TestMissingFile(t *testing.T) {
	s := newEnv(t)
	s.path = filepath.Join(filepath.Dir(s.path), "etc", "app", "nodes.yaml")
	nodes := s.nodes("a")
	ch := s.dial()
	_, err := ch.call()
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Contains(t, err.Error(), "nodes: "+s.path+": there is no such file; it will be read when it appears")
	waited := make(chan error)
	go func() {
		_, err := ch.call(grpc.WaitForReady(true))
		waited <- err
	}()
	require.NoError(t, os.MkdirAll(filepath.Dir(s.path), 0o700))
	s.put(fileOf(nodes...))
	require.NoError(t, <-waited)
	require.Equal(t, "a", ch.answers())
}

// RPCs fail with the place of the mistake until it is mended.
func TestBadFileAtStart(t *testing.T) {
	s := newEnv(t)
	s.put("nodes:\n  - address: ::1:1980\n")
	ch := s.dial()
	_, err := ch.call()
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Contains(t, err.Error(), "nodes: "+s.path+`:2: address: value "::1:1980": want host:port or [IPv6]:port`)
	s.put(fileOf(s.nodes("a")...))
	s.wait("answer", func() bool { name, _ := ch.call(); return name == "a" })
}

// A target that names no file, or more, fails RPCs with what is allowed.
func TestBadTargets(t *testing.T) {
	s := newEnv(t)
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
		_, err := s.dialTarget(target).call()
		require.ErrorContains(t, err, text, target)
	}
}

// A relative target follows the file in the working directory, and shares its
// load with the absolute one.
func TestRelativeTarget(t *testing.T) {
	s := newEnv(t)
	nodes := s.nodes("a", "b")
	require.NoError(t, os.Mkdir(filepath.Join(filepath.Dir(s.path), "my conf"), 0o700))
	s.path = filepath.Join(filepath.Dir(s.path), "my conf", "nodes.yaml")
	s.put(fileOf(nodes...))
	t.Chdir(filepath.Dir(filepath.Dir(s.path)))
	relative, absolute := s.dialTarget("nodes:my%20conf/nodes.yaml"), s.dialTarget("nodes://"+filepath.ToSlash(filepath.Dir(filepath.Dir(s.path)))+"/my%20conf/nodes.yaml")
	relative.Connect()
	absolute.Connect()
	s.wait("both channels", func() bool {
		ready := 0
		for _, n := range s.snapshot(absolute.CanonicalTarget()).Endpoints {
			for _, m := range n.Members {
				if m.Ready {
					ready++
				}
			}
		}
		return ready == 4
	})
	_, by := relative.openStreams(1)
	_, more := absolute.openStreams(1)
	for name, n := range more {
		by[name] += n
	}
	require.Equal(t, map[string]int{"a": 1, "b": 1}, by)
}

// Files with one resource key share their load.
func TestResourceKey(t *testing.T) {
	s, other := newEnv(t), newEnv(t)
	nodes := s.nodes("a", "b")
	for _, s := range []*env{s, other} {
		s.put("resourceKey: orders of " + t.Name() + "\n" + fileOf(nodes...))
	}
	one, two := s.dial(), other.dial()
	for _, ch := range []*channel{one, two} {
		ch.Connect()
	}
	s.wait("four members", func() bool {
		ready := 0
		for _, n := range s.snapshot("orders of " + t.Name()).Endpoints {
			for _, m := range n.Members {
				if m.Ready {
					ready++
				}
			}
		}
		return ready == 4
	})
	_, by := one.openStreams(1)
	_, more := two.openStreams(1)
	for name, n := range more {
		by[name] += n
	}
	require.Equal(t, map[string]int{"a": 1, "b": 1}, by)
}

// A service config in the file selects the policy.
func TestPolicyFromTheFile(t *testing.T) {
	s := newEnv(t)
	nodes := s.nodes("a", "b")
	s.put("serviceConfig: {loadBalancingConfig: [{least_conn: {}}]}\n" + fileOf(nodes...))
	ch := s.dial(grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"pick_first":{}}]}`))
	ch.Connect()
	s.waitForReady(nodes...)
	streams, by := ch.openStreams(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
	// One that is refused later does not hold up the nodes.
	c := s.nodes("c")[0]
	s.put("serviceConfig: {loadBalancingConfig: [{least_conn: {priorityFailover: 5}}]}\n" + fileOf(append(nodes, c)...))
	s.waitForReady(append(nodes, c)...)
	_, by = ch.openStreams(2)
	require.Equal(t, map[string]int{"c": 2}, by)
	ch.checkStreams(streams)
	// At the start there is nothing else to use.
	fresh := s.dial()
	_, err := fresh.call()
	require.ErrorContains(t, err, fmt.Sprintf("nodes: %s:1: serviceConfig: error parsing config for policy \"least_conn\": least_conn: field priorityFailover: value 5: want", s.path))
	s.put("serviceConfig: {loadBalancingConfig: [{least_conn: {priorityFailover: 5s}}]}\n" + fileOf(nodes...))
	s.wait("answer", func() bool { _, err := fresh.call(); return err == nil })
}

// A channel that goes idle lets go of the file and reads it anew when it wakes.
func TestIdle(t *testing.T) {
	s := newEnv(t)
	nodes := s.nodes("a", "b")
	s.put(fileOf(nodes[0]))
	ch := s.dial(grpc.WithIdleTimeout(50 * time.Millisecond))
	require.Equal(t, "a", ch.answers())
	s.wait("idle", func() bool { return ch.GetState() == connectivity.Idle })
	s.put(fileOf(nodes[1]))
	require.Equal(t, "b", ch.answers())
}
