package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
	discovery "k8s.io/api/discovery/v1"

	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
	"github.com/leastconn/grpc-leastconn/resolver/kubernetes/internal/target"
)

// recordingConn is a channel that writes down what it is told, and when.
type recordingConn struct {
	resolver.ClientConn // nil: what is not overridden is not called
	start               time.Time

	mu  sync.Mutex
	got []string
}

func (c *recordingConn) note(what any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, fmt.Sprint(time.Since(c.start), " ", what))
}

func (c *recordingConn) UpdateState(s resolver.State) error {
	var all []string
	for _, ep := range s.Endpoints {
		word := lcresolver.ID(ep)
		if lcresolver.Weight(ep) == 0 {
			word += " draining"
		}
		all = append(all, word)
	}
	c.note(all)
	return nil
}

func (c *recordingConn) ReportError(err error) { c.note(err) }

// resolving runs a resolver in virtual time, whose source the test changes as
// client-go's reflector does.
func resolving(t *testing.T, dialled string, test func(s *source, got func() []string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		parsed, err := target.Parse(targetOf(t, dialled).URL, target.Target{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, conn := newSource(parsed, nil, nil), &recordingConn{start: time.Now()}
		go newServiceResolver(parsed, conn).run(ctx, s)
		test(s, func() []string {
			synctest.Wait()
			conn.mu.Lock()
			defer conn.mu.Unlock()
			got := conn.got
			conn.got = nil
			return got
		})
	})
}

// replace is what a new list does.
func (s *source) replace(all ...*discovery.EndpointSlice) {
	var objects []any
	for _, slice := range all {
		objects = append(objects, slice)
	}
	_ = s.Replace(objects, "")
}

// The first of many changes is passed on at once, the others together a moment
// later; nothing is passed on twice.
func TestChangesArePassedOnTogether(t *testing.T) {
	resolving(t, "k8s:///chat.shop:grpc", func(s *source, got func() []string) {
		require.Empty(t, got())
		s.replace(slice("1", podA))
		require.Equal(t, []string{"0s [a]"}, got())
		_ = s.Add(slice("2", podB))
		require.Empty(t, got())
		time.Sleep(pause / 2)
		_ = s.Add(slice("3", podC))
		require.Empty(t, got())
		time.Sleep(pause)
		require.Equal(t, []string{"100ms [a b c]"}, got())
		time.Sleep(time.Minute)
		_ = s.Update(slice("3", podC))
		s.replace(slice("1", podA), slice("2", podB, podC))
		require.Empty(t, got())
		_ = s.Update(slice("2", podB, ending("c", "10.0.0.3")))
		require.Equal(t, []string{"1m0.15s [a b c draining]"}, got())
	})
}

// Two slices swap their pods by two events: the channel hears nothing. A pod that
// does not come back leaves by itself.
func TestChannelHearsNothingOfASwap(t *testing.T) {
	for _, first := range []string{"1", "2"} {
		resolving(t, "k8s:///chat.shop:grpc", func(s *source, got func() []string) {
			s.replace(slice("1", podA), slice("2", podB))
			require.Equal(t, []string{"0s [a b]"}, got())
			time.Sleep(time.Second)
			swapped := map[string]*discovery.EndpointSlice{"1": slice("1", podB), "2": slice("2", podA)}
			_ = s.Update(swapped[first])
			time.Sleep(settle / 2)
			require.Empty(t, got())
			delete(swapped, first)
			for _, second := range swapped {
				_ = s.Update(second)
			}
			time.Sleep(time.Minute)
			require.Empty(t, got())

			_ = s.Delete(slice("2"))
			time.Sleep(time.Minute)
			require.Len(t, got(), 1)
		})
	}
}

// A service that is not there is an error that says so, until it is. One that
// becomes empty is an empty list, and the reason; one whose pods get unready is so at
// once.
func TestServiceIsEmpty(t *testing.T) {
	const about = " k8s: service chat in namespace shop: "
	const gone = about + "it has no EndpointSlices: there is no such service, or one without a selector"
	resolving(t, "k8s:///chat.shop:grpc", func(s *source, got func() []string) {
		s.replace()
		require.Equal(t, []string{"0s" + gone}, got())
		time.Sleep(time.Second)
		s.replace()
		require.Empty(t, got())
		_ = s.Add(slice("1", podA))
		require.Equal(t, []string{"1s [a]"}, got())
		time.Sleep(time.Second)
		_ = s.Update(slice("1", down("a", "10.0.0.1")))
		require.Equal(t, []string{"2s []", "2s" + about + "none of its 1 endpoints is ready"}, got())
		time.Sleep(time.Second)
		_ = s.Update(slice("1", podA))
		require.Equal(t, []string{"3s [a]"}, got())
		time.Sleep(time.Second)
		_ = s.Delete(slice("1"))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"6s []", "6s" + gone}, got())
	})
}

// An API server that does not answer is reported once, and the list stays. After
// it nothing is said that was said before.
func TestListOutlastsErrors(t *testing.T) {
	resolving(t, "k8s:///chat.shop:grpc", func(s *source, got func() []string) {
		const refused = " k8s: service chat in namespace shop: API server: refused"
		s.answered(errors.New("refused"))
		require.Equal(t, []string{"0s" + refused}, got())
		s.answered(errors.New("refused"))
		require.Empty(t, got())
		s.replace(slice("1", podA))
		require.Equal(t, []string{"0s [a]"}, got())
		time.Sleep(time.Second)
		s.answered(errors.New("refused"))
		require.Equal(t, []string{"1s" + refused}, got())
		s.answered(nil)
		require.Empty(t, got())
		s.answered(errors.New("refused"))
		require.Equal(t, []string{"1s" + refused}, got())
	})
}

// All that slices say of an endpoint reaches the channel.
func TestStateOfAChannel(t *testing.T) {
	parsed, err := target.Parse(targetOf(t, "k8s:///chat").URL, target.Target{Namespace: "shop"})
	require.NoError(t, err)
	s := newServiceResolver(parsed, nil).state([]endpoint{
		{uid: "a", addresses: []string{"[::1]:1", "127.0.0.1:1"}, priority: 1},
		{addresses: []string{"127.0.0.2:1"}, draining: true},
	})
	require.Equal(t, "k8s:///chat.shop", lcresolver.ResourceKey(s))
	require.Len(t, s.Endpoints, 2)
	a, b := s.Endpoints[0], s.Endpoints[1]
	require.Equal(t, []resolver.Address{{Addr: "[::1]:1"}, {Addr: "127.0.0.1:1"}}, a.Addresses)
	require.Equal(t, []any{"a", uint32(1), uint32(1)}, []any{lcresolver.ID(a), lcresolver.Weight(a), lcresolver.Priority(a)})
	require.Equal(t, []any{"", uint32(0), uint32(0)}, []any{lcresolver.ID(b), lcresolver.Weight(b), lcresolver.Priority(b)})
}

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
