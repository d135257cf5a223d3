package leastconnbalancer

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"

	"github.com/leastconn/grpc-leastconn/picker"
)

// inhibitUpdates keeps changes from being published while f makes them, and then
// publishes the state as it is.
func (b *leastConn) inhibitUpdates(f func() error) error {
	b.mu.Lock()
	b.inhibited = true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.inhibited = false
		b.publishLocked()
	}()
	return f()
}

// publish publishes the state as it is.
func (b *leastConn) publish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.publishLocked()
}

func (b *leastConn) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// fail publishes err; there are no children.
func (b *leastConn) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outage.noChildren = err
	b.publishLocked()
}

// publishLocked gives gRPC the state of the whole with its picker, unless that is
// about to happen or all is over. Each call wakes the RPCs that wait for one.
func (b *leastConn) publishLocked() {
	if b.inhibited || b.closed {
		return
	}
	l, s := b.levels.currentLocked()
	if l != nil && b.putOffWakeLocked(l.picker) {
		return
	}
	b.load.serveLocked(l)
	p, serving := base.NewErrPicker(balancer.ErrNoSubConnAvailable), (*picker.Picker)(nil)
	switch {
	case l != nil:
		p, serving = l.picker, l.picker
		b.outage.warned = ""
	case s == connectivity.TransientFailure:
		p = picker.Unserved(b.failingPickerLocked(), b.load.set)
	default:
		p = picker.Unserved(p, b.load.set)
	}
	b.wakes.published(serving)
	b.cc.UpdateState(balancer.State{ConnectivityState: s, Picker: p})
	if b.load.set != nil {
		b.load.set.Published()
	}
}

// outage is what RPCs fail with while no endpoint can take them. The balancer's
// mu guards it.
type outage struct {
	noChildren error  // why there are none
	lastFailed *child // the last eligible one that reported TRANSIENT_FAILURE
	warned     string // the causes that were logged
}

// refreshLastErrorLocked finds a failed child to quote when the last one is not
// eligible any more.
func (o *outage) refreshLastErrorLocked(listed []*child) {
	if o.lastFailed != nil && o.lastFailed.eligible() {
		return
	}
	o.lastFailed = nil
	for _, c := range listed {
		if c.state == connectivity.TransientFailure && c.eligible() {
			o.lastFailed = c
			return
		}
	}
}

// failingPickerLocked returns a picker that fails RPCs with the last connection
// error, or with what else keeps them from an endpoint.
func (b *leastConn) failingPickerLocked() balancer.Picker {
	if c := b.outage.lastFailed; c != nil {
		return c.picker
	}
	cause := b.outage.noChildren
	if n := b.levels.childrenLocked(); n > 0 {
		why := "weight 0"
		if b.load.drains {
			why = "weight 0, or by Drain"
		}
		cause = fmt.Errorf("%s: all %d endpoints are draining (%s)", Name, n, why)
	}
	if cause == nil {
		return base.NewErrPicker(errors.New("no endpoints to connect to"))
	}
	b.warnOnceLocked(cause)
	return base.NewErrPicker(cause)
}
