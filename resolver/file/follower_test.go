package file

import (
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"

	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// What is wrong is said once, and the last good list goes on.
func TestErrorsAreReportedOnce(t *testing.T) {
	b := newFollowerEnv(t)
	b.waitForErrors(1, noFile)
	b.waitForReread()
	b.put(fileA)
	b.waitForList(nodeA)
	bad := "nodes:\n  - address: 10.0.0.1:1\n    weight: -1\n"
	b.put(bad)
	const atLine3 = ":3: weight: value -1: want an integer from 0 to 2147483648"
	b.waitForErrors(2, atLine3)
	b.waitForReread()
	b.put(bad + "# still\n")
	b.waitForReread()
	b.put(bad + "  - address: 10.0.0.2:1\n")
	b.waitForReread()
	b.waitForErrors(2, atLine3)
	require.Equal(t, 1, b.updates())
	b.put("nodes: 7\n")
	b.waitForErrors(3, ":1: nodes: value 7: want a list, such as [{address: 10.0.0.1:443}]; an empty one is []")
	// A good one comes between: even the same list, then the same error, is news.
	b.put(fileA)
	b.wait("the list again", func() bool { return b.updates() == 2 })
	b.put(bad)
	b.waitForErrors(4, atLine3)
	require.Equal(t, []string{nodeA}, b.addresses())
}

// What is no file to read is told apart from what is missing.
func TestUnreadable(t *testing.T) {
	b := newFollowerEnv(t)
	b.waitForErrors(1, noFile)
	require.NoError(t, os.Mkdir(b.path, 0o700))
	b.waitForErrors(2, ": want a regular file")
	require.NoError(t, os.Remove(b.path))
	b.waitForErrors(3, noFile)
	require.NoError(t, os.Symlink("nodes.yaml", b.path))
	b.waitForErrors(4, ": too many levels of symbolic links")
	require.NoError(t, os.Remove(b.path))
	b.waitForErrors(5, noFile)
	f, err := os.Create(b.path)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(maxSize+1))
	require.NoError(t, f.Close())
	b.waitForErrors(6, ": want at most 4194304 bytes")
	b.put(fileA)
	b.waitForList(nodeA)
}

// The channel's authority is the file's, if it has one when the channel is made.
func TestOverrideAuthority(t *testing.T) {
	b := newFollowerEnv(t)
	target := resolver.Target{URL: url.URL{Scheme: Scheme, Path: b.path}}
	authority := func() string { return builder{}.OverrideAuthority(target) }
	require.Equal(t, "localhost", authority(), "no file")
	b.put("authority: a.example:8443\n" + fileA)
	require.Equal(t, "a.example:8443", authority())
	b.put(fileA)
	require.Equal(t, "localhost", authority(), "no authority")
	b.put("authority: a.example\nnodes: 7\n")
	require.Equal(t, "localhost", authority(), "bad file")
}

// Hundreds of rewrites, by several hands and in both ways: the last one counts,
// a burst costs few reads, and no list is seen that was never written.
func TestManyRewrites(t *testing.T) {
	b := newFollowerEnv(t)
	b.put(fileA)
	b.waitForList(nodeA)
	begun, errs := time.Now(), len(b.errors())
	var hands sync.WaitGroup
	for hand := range 4 {
		hands.Go(func() {
			for i := range 100 {
				content := fmt.Sprintf("nodes: [{address: \"10.%d.0.1:%d\"}]\n", hand, i+1)
				next := fmt.Sprintf("%s.%d", b.path, hand)
				if os.WriteFile(next, []byte(content), 0o600) != nil || os.Rename(next, b.path) != nil {
					t.Error("cannot write")
				}
				b.resolver.ResolveNow(resolver.ResolveNowOptions{})
			}
		})
	}
	hands.Wait()
	for range 100 {
		b.write(fileA)
	}
	b.write(fileB)
	b.waitForList(nodeB)
	b.waitForReread()
	require.Equal(t, []string{nodeB}, b.addresses())
	require.LessOrEqual(t, b.updates(), 3+int(time.Since(begun)/defaultIntervals.quiet))
	for _, err := range b.errors()[errs:] { // of a file that is being written in place
		require.True(t, strings.HasSuffix(err, emptyFile), err)
	}
}

// Close ends all that Build has started, whatever it is at.
func TestClose(t *testing.T) {
	b := newFollowerEnv(t)
	for i := range 50 {
		b.put(fmt.Sprintf("nodes: [{address: \"10.0.0.1:%d\"}]\n", i+1))
		b.build(resolver.BuildOptions{})
		if i%2 == 0 {
			b.waitForList(fmt.Sprintf("10.0.0.1:%d", i+1))
		}
		b.put(fileB)
		b.resolver.Close()
		b.setClosed(true)
		b.resolver.ResolveNow(resolver.ResolveNowOptions{})
		b.resolver.Close()
		// A goroutine that Close has waited for may still be returning.
		b.wait("goroutines have ended", func() bool {
			left := goroutines()
			return !strings.Contains(left, "fsnotify") && !strings.Contains(left, "(*nodeFile)")
		})
		b.mu.Lock()
		late := b.late
		b.mu.Unlock()
		require.False(t, late)
		b.setClosed(false)
	}
}

// Close waits for a call that is under way.
func TestCloseWaits(t *testing.T) {
	b := &followerEnv{env: newEnv(t), recordingConn: &recordingConn{}}
	b.write(fileA)
	called, over := make(chan struct{}), atomic.Bool{}
	b.during = func() {
		close(called)
		time.Sleep(20 * time.Millisecond) // for a Close that does not wait to get ahead
		over.Store(true)
	}
	b.build(resolver.BuildOptions{})
	<-called
	b.resolver.Close()
	require.True(t, over.Load())
}

func goroutines() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// What the file says is what the channel is told.
func TestState(t *testing.T) {
	b := newFollowerEnv(t)
	b.put(`
resourceKey: orders
nodes:
  - {address: "10.0.0.1:1", weight: 0, priority: 2, id: a, maxInFlight: 3}
  - addresses: ["10.0.0.2:1", "[::1]:1"]
`)
	b.waitForList(nodeA, nodeB)
	s := b.state()
	require.Equal(t, "orders", lcresolver.ResourceKey(s))
	require.Nil(t, s.ServiceConfig)
	require.Empty(t, s.Addresses)
	first, second := s.Endpoints[0], s.Endpoints[1]
	require.Equal(t, []any{uint32(0), uint32(2), "a"}, []any{lcresolver.Weight(first), lcresolver.Priority(first), lcresolver.ID(first)})
	require.Equal(t, []any{uint32(1), uint32(0), ""}, []any{lcresolver.Weight(second), lcresolver.Priority(second), lcresolver.ID(second)})
	limit, ok := lcresolver.MaxInFlight(first)
	require.Equal(t, []any{uint32(3), true}, []any{limit, ok})
	_, ok = lcresolver.MaxInFlight(second)
	require.False(t, ok, "the policy's holds")
	require.Equal(t, []resolver.Address{{Addr: "10.0.0.2:1", ServerName: "10.0.0.2:1"}, {Addr: "[::1]:1", ServerName: "[::1]:1"}}, second.Addresses)
	b.put(fileA)
	b.waitForList(nodeA)
	require.Equal(t, "nodes://"+b.path, lcresolver.ResourceKey(b.state()), "as the canonical target")
}

// A service config goes to gRPC; what gRPC says against it comes back with the
// place, and the nodes are taken up all the same.
func TestServiceConfig(t *testing.T) {
	b := newFollowerEnv(t)
	b.put("nodes: []\nserviceConfig:\n  loadBalancingConfig: [{nobody: {}}]\n")
	b.waitForList()
	require.Equal(t, []string{`{"loadBalancingConfig":[{"nobody":{}}]}`}, b.parsed)
	require.EqualError(t, b.state().ServiceConfig.Err, fmt.Sprintf("nodes: %s:3: serviceConfig: no policy", b.path))
	b.build(resolver.BuildOptions{DisableServiceConfig: true})
	b.wait("state", func() bool { return b.updates() == 2 })
	require.Nil(t, b.state().ServiceConfig)
}
