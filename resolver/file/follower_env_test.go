package file

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// recordingConn is a channel that keeps what a resolver tells it. It embeds the interface
// for the methods that the resolver must not call.
type recordingConn struct {
	resolver.ClientConn
	mu     sync.Mutex
	states []resolver.State
	errs   []string
	parsed []string
	closed bool
	late   bool   // it was called after the resolver had been closed
	during func() // called in UpdateState, if any
}

func (s *recordingConn) UpdateState(state resolver.State) error {
	if s.during != nil {
		s.during()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states, s.late = append(s.states, state), s.late || s.closed
	return errors.New("not wanted")
}

func (s *recordingConn) ReportError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs, s.late = append(s.errs, err.Error()), s.late || s.closed
}

func (s *recordingConn) ParseServiceConfig(js string) *serviceconfig.ParseResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parsed = append(s.parsed, js)
	return &serviceconfig.ParseResult{Err: errors.New("no policy")}
}

// addresses returns the first address of each node of the latest state.
func (s *recordingConn) addresses() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.states) == 0 {
		return nil
	}
	addrs := []string{}
	for _, ep := range s.states[len(s.states)-1].Endpoints {
		addrs = append(addrs, ep.Addresses[0].Addr)
	}
	return addrs
}

func (s *recordingConn) setClosed(closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = closed
}

func (s *recordingConn) updates() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.states)
}

func (s *recordingConn) errors() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.errs...)
}

func (s *recordingConn) state() resolver.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[len(s.states)-1]
}

// followerEnv is an env with one resolver.
type followerEnv struct {
	*env
	*recordingConn
	resolver *follower
}

// newFollowerEnv follows a file that does not exist yet.
func newFollowerEnv(t *testing.T, dirs ...string) *followerEnv {
	b := &followerEnv{env: newEnv(t, dirs...), recordingConn: &recordingConn{}}
	b.build(resolver.BuildOptions{})
	return b
}

// build follows the file by its watch alone: what a poll would find is not seen.
func (b *followerEnv) build(opts resolver.BuildOptions) {
	b.Helper()
	if b.resolver != nil {
		b.resolver.Close()
	}
	r := newFollower(b.path, b.recordingConn, opts)
	r.intervals.poll = time.Hour
	r.start(newWatch(b.path))
	b.resolver = r
	b.Cleanup(func() {
		r.Close()
		b.setClosed(true)
	})
}

// waitForList waits until the latest list has exactly these nodes.
func (b *followerEnv) waitForList(addrs ...string) {
	b.Helper()
	b.wait(fmt.Sprint("list ", addrs), func() bool {
		got := b.addresses()
		return got != nil && slices.Equal(got, addrs)
	})
}

// waitForErrors waits until so many errors have been reported. The last of them
// is this one, about the file. A file that is being written in place may have been
// read while it was empty: that is none of them.
func (b *followerEnv) waitForErrors(n int, last string) {
	b.Helper()
	var errs []string
	b.wait(fmt.Sprint(n, " errors"), func() bool {
		errs = slices.DeleteFunc(b.errors(), func(err string) bool { return strings.HasSuffix(err, emptyFile) })
		return len(errs) >= n
	})
	require.Len(b, errs, n)
	require.Equal(b, "nodes: "+b.path+last, errs[n-1])
}

// waitForReread returns when the file has been read again since the call: the second
// wish is only taken up after the first has been fulfilled.
func (b *followerEnv) waitForReread() {
	b.Helper()
	for range 2 {
		b.resolver.ResolveNow(resolver.ResolveNowOptions{})
		b.wait("a wish is taken up", func() bool { return len(b.resolver.requested) == 0 })
	}
}

const (
	fileA  = "nodes: [{address: \"10.0.0.1:1\"}]\n"
	fileB  = "nodes: [{address: \"10.0.0.2:1\"}]\n"
	fileAB = "nodes: [{address: \"10.0.0.1:1\"}, {address: \"10.0.0.2:1\"}]\n"
	nodeA  = "10.0.0.1:1"
	nodeB  = "10.0.0.2:1"

	emptyFile = ":1: file: there is nothing in it: want an object with the key nodes"

	noFile = ": there is no such file; it will be read when it appears"
)
