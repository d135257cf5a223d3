package integration

import (
	"sync/atomic"

	"google.golang.org/grpc/resolver"
)

// failureCounter builds a resolver and counts the errors that it reports.
type failureCounter struct {
	resolver.Builder
	reported atomic.Int64
}

func (b *failureCounter) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	return b.Builder.Build(target, countedConn{cc, b}, opts)
}

// countedConn embeds the channel to intercept its errors.
type countedConn struct {
	resolver.ClientConn
	counter *failureCounter
}

func (c countedConn) ReportError(err error) {
	c.ClientConn.ReportError(err)
	c.counter.reported.Add(1)
}
