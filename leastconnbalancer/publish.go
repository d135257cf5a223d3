package leastconnbalancer

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"
)

// hold keeps changes from being published until publish.
func (b *leastConn) hold() {
	b.mu.Lock()
	b.held = true
	b.mu.Unlock()
}

// publish ends what hold began and publishes the state as it is now.
func (b *leastConn) publish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.held = false
	b.publishLocked()
}

func (b *leastConn) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// fail publishes err as long as there are no children.
func (b *leastConn) fail(err error) {
	b.mu.Lock()
	b.failure = err
	b.mu.Unlock()
	b.publish()
}

// publishLocked gives gRPC the state of the whole with its picker. Each call
// wakes the RPCs that wait for one. Caller holds mu.
func (b *leastConn) publishLocked() {
	l, s := b.current()
	p := base.NewErrPicker(balancer.ErrNoSubConnAvailable)
	switch {
	case l != nil:
		p = l.picker
		b.serve(l)
		b.warned = ""
	case s == connectivity.TransientFailure:
		p = b.failurePicker()
	}
	b.cc.UpdateState(balancer.State{ConnectivityState: s, Picker: p})
}

// failurePicker fails RPCs with the last connection error, or with what else
// keeps them from an endpoint. Caller holds mu.
func (b *leastConn) failurePicker() balancer.Picker {
	children := 0
	for _, l := range b.levels {
		children += l.children
	}
	switch {
	case b.failed != nil:
		return b.failed.picker
	case children > 0:
		err := fmt.Errorf("%s: all %d endpoints are draining (weight 0)", Name, children)
		b.warnOnce(err)
		return base.NewErrPicker(err)
	case b.failure != nil:
		b.warnOnce(b.failure)
		return base.NewErrPicker(b.failure)
	}
	return base.NewErrPicker(errors.New("no endpoints to connect to"))
}
