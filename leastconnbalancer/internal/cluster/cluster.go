// Package cluster names the xDS cluster that a list of endpoints is of.
//
// How is not known here: package xdscluster registers it, so that programs that do not import it need
// not link what it needs.
package cluster

import (
	"sync/atomic"

	"google.golang.org/grpc/resolver"
)

var registered atomic.Pointer[func(resolver.State) string]

// Register sets how clusters are named: name returns "" where there is none.
func Register(name func(resolver.State) string) { registered.Store(&name) }

// Linked reports whether it is known how clusters are named.
func Linked() bool { return registered.Load() != nil }

// Name returns the name of the cluster, "" without one, and where it is not known how to name it.
func Name(s resolver.State) string {
	if name := registered.Load(); name != nil && s.Attributes != nil {
		return (*name)(s)
	}
	return ""
}
