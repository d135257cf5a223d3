package leastconnbalancer

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"
)

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

// publishLocked gives gRPC the aggregate state with its picker. Each call wakes
// the RPCs that wait for one. Caller holds mu.
func (b *leastConn) publishLocked() {
	s := balancer.State{ConnectivityState: b.states.CurrentState()}
	switch s.ConnectivityState {
	case connectivity.Ready:
		s.Picker = b.picker
		if b.draining == b.ready {
			s.Picker = base.NewErrPicker(fmt.Errorf("%s: all %d ready endpoints are draining (weight 0)", Name, b.ready))
		}
	case connectivity.TransientFailure:
		s.Picker = b.failurePicker()
	default:
		s.Picker = base.NewErrPicker(balancer.ErrNoSubConnAvailable)
	}
	b.cc.UpdateState(s)
}

// failurePicker fails RPCs with the last connection error. Caller holds mu.
func (b *leastConn) failurePicker() balancer.Picker {
	if b.failed != nil {
		return b.failed.picker
	}
	if b.failure == nil {
		return base.NewErrPicker(errors.New("no endpoints to connect to"))
	}
	return base.NewErrPicker(b.failure)
}
