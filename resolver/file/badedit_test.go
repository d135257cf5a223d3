package file_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/resolver/file"
)

// errorCounter builds the resolver and counts the errors that it reports.
type errorCounter struct {
	resolver.Builder
	reported atomic.Int64
}

func (b *errorCounter) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	return b.Builder.Build(target, countingConn{cc, b}, opts)
}

// countingConn embeds the channel to intercept its errors.
type countingConn struct {
	resolver.ClientConn
	counter *errorCounter
}

func (c countingConn) ReportError(err error) {
	c.ClientConn.ReportError(err)
	c.counter.reported.Add(1)
}

// A bad edit that the channel has read changes nothing, a repeat of an address
// included.
func TestBadEdit(t *testing.T) {
	s := newEnv(t)
	nodes := s.nodes("a", "b")
	s.put(fileOf(nodes...))
	counter := &errorCounter{Builder: resolver.Get(file.Scheme)}
	ch := s.dial(grpc.WithResolvers(counter))
	ch.Connect()
	s.waitForReady(nodes...)
	streams, _ := ch.openStreams(4)
	for i, bad := range []string{fileOf(nodes[0], nodes[0]), "nodes: [", "", "nodes:\n  - address: ::1:1980\n"} {
		s.put(bad)
		s.wait("the channel has read it", func() bool { return counter.reported.Load() == int64(i+1) })
		s.waitForReady(nodes...)
		_, by := ch.openStreams(2)
		require.Equal(t, map[string]int{"a": 1, "b": 1}, by)
	}
	ch.checkStreams(streams)
	require.Equal(t, []int{1, 1}, []int{nodes[0].Conns(), nodes[1].Conns()})
}
