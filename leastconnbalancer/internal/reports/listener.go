// Package reports has the balancers of the process hear what servers tell of their load.
// Of the connections to an endpoint that all balancers have, one listens. When it goes the
// next one takes over.
//
// How a connection listens is not known here: package orcaload registers it, so that
// programs that do not import it need not link what it needs.
package reports

import (
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
)

// Listener listens on a connection that is READY to what its server tells of its load,
// about once in each interval. It calls report on goroutines of its own, which take gRPC's
// locks. Once stop has returned it calls it no more; stop may be called more than once.
type Listener func(conn balancer.SubConn, interval time.Duration, report Report) (stop func())

// Report takes up what a server has told: its RPCs in flight, of all its clients, and how many
// begin per second, negative where that is not known.
type Report func(inFlight int64, rps float64)

var registered atomic.Pointer[Listener]

// Register sets how connections listen. The last one holds, for those that begin to.
func Register(l Listener) { registered.Store(&l) }

// Linked reports whether a listener is registered.
func Linked() bool { return registered.Load() != nil }
