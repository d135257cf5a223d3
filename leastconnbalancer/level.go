package leastconnbalancer

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/leastconn/grpc-leastconn/picker"
	"github.com/leastconn/grpc-leastconn/state"
)

// level is the endpoints of one priority. Only those with a weight above 0, its
// takers, decide whether RPCs can use it. The balancer's mu guards it.
type level struct {
	priority  uint32
	readySet  *state.ReadySet
	readySets []*state.ReadySet // the level's and those below it
	picker    *picker.Picker    // over them
	children  int
	takers    int
	states    balancer.ConnectivityStateEvaluator // of the takers

	// impatient is set when RPCs are not to wait for the level any more: it has
	// failed, or its time is over. Once it is ready, they wait for it again.
	impatient bool
	since     time.Time   // when the waiting began
	timer     *time.Timer // ends it
}

// state returns that of the takers, SHUTDOWN without one.
func (l *level) state() connectivity.State {
	if l.takers == 0 {
		return connectivity.Shutdown
	}
	return l.states.CurrentState()
}

// add counts a child in, with its state and weight; remove counts it out.
func (l *level) add(c *child) {
	l.children++
	if c.weight > 0 {
		l.takers++
		l.states.RecordTransition(connectivity.Shutdown, c.state)
	}
}

func (l *level) remove(c *child) {
	l.children--
	if c.weight > 0 {
		l.takers--
		l.states.RecordTransition(c.state, connectivity.Shutdown)
	}
}

// settle takes up the state that the takers have after a change.
func (l *level) settle() {
	switch l.state() {
	case connectivity.Ready, connectivity.Shutdown:
		l.stop()
		l.since, l.impatient = time.Time{}, false
	case connectivity.TransientFailure:
		l.stop()
		l.since, l.impatient = time.Time{}, true
	}
}

// waiting reports whether the level is connecting and RPCs are to wait for it.
func (l *level) waiting() bool {
	s := l.state()
	return !l.impatient && (s == connectivity.Connecting || s == connectivity.Idle)
}

func (l *level) stop() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// levelOf returns the level of a priority; a new one has no picker before prune.
// Caller holds mu.
func (b *leastConn) levelOf(priority uint32) *level {
	i, found := slices.BinarySearchFunc(b.levels, priority, func(l *level, p uint32) int { return cmp.Compare(l.priority, p) })
	if !found {
		b.levels = slices.Insert(b.levels, i, &level{priority: priority, readySet: b.set.NewReadySet(priority)})
		b.unlinked = true
	}
	return b.levels[i]
}

// prune removes the levels that have no endpoints and links the others.
func (b *leastConn) prune() {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := len(b.levels)
	b.levels = slices.DeleteFunc(b.levels, func(l *level) bool {
		if l.children > 0 {
			return false
		}
		l.stop()
		l.readySet.Close()
		return true
	})
	if b.unlinked || len(b.levels) < all {
		b.link()
	}
}

// link gives each level its picker. Caller holds mu.
func (b *leastConn) link() {
	b.unlinked = false
	views := make([]*state.ReadySet, len(b.levels))
	for i, l := range b.levels {
		views[i] = l.readySet
	}
	for i, l := range b.levels {
		l.readySets, l.picker = views[i:], picker.New(views[i:]...)
	}
}

// current returns the level that RPCs are to use, nil when none can be used, and
// the state of the whole. Caller holds mu.
func (b *leastConn) current() (*level, connectivity.State) {
	var all balancer.ConnectivityStateEvaluator
	for i, l := range b.levels {
		s := l.state()
		if s == connectivity.Ready {
			return l, s
		}
		if last := i == len(b.levels)-1; l.waiting() && !last && b.watch(l) {
			return nil, s
		}
		all.RecordTransition(connectivity.Shutdown, s)
	}
	return nil, all.CurrentState()
}

// watch reports whether there is time left to wait for l, and sees to it that
// the waiting ends. Caller holds mu.
func (b *leastConn) watch(l *level) bool {
	if l.since.IsZero() {
		l.since = time.Now()
	}
	left := b.failover - time.Since(l.since)
	if left <= 0 {
		return false
	}
	if l.timer != nil {
		return true
	}
	var t *time.Timer
	t = time.AfterFunc(left, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if l.timer != t {
			return
		}
		l.timer = nil
		l.impatient = true
		if !b.held {
			b.publishLocked()
		}
	})
	l.timer = t
	return true
}
