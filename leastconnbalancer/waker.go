package leastconnbalancer

// waker publishes a picker when RPCs that wait have been given room, since that
// is what gRPC wakes them by. Signals that come while it does so make one more
// of it together.
type waker struct {
	wake chan struct{} // with a buffer of one
	done chan struct{}
}

// awaken starts the waker, if there is none yet, and gives it to the endpoint set.
// Caller holds mu.
func (b *leastConn) awaken() {
	if b.waker != nil {
		return
	}
	w := &waker{wake: make(chan struct{}, 1), done: make(chan struct{})}
	b.waker = w
	b.guards.Wake = w.wake
	b.set.SetGuards(b.guards)
	go func() {
		for {
			select {
			case <-w.wake:
				b.republish()
			case <-w.done:
				return
			}
		}
	}()
}

// signal returns what the waker is woken by, nil without one.
func (w *waker) signal() chan<- struct{} {
	if w == nil {
		return nil
	}
	return w.wake
}

// stop ends the waker.
func (w *waker) stop() {
	if w != nil {
		close(w.done)
	}
}

// republish publishes the state as it is, unless that is about to happen or all
// is over.
func (b *leastConn) republish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.held && !b.closed {
		b.publishLocked()
	}
}
