package leastconnbalancer

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/leastconn/grpc-leastconn/picker"
	"github.com/leastconn/grpc-leastconn/state"
)

// levels are the priority levels that have endpoints, the highest priority
// first, and the failover from one to the next.
type levels struct {
	mu      *sync.Mutex // the balancer's; it guards what follows and each level
	expired func()      // publishes after a failover; called with mu held

	ordered  []*level
	unlinked bool          // a level has no picker yet
	failover time.Duration // how long RPCs wait for a level
}

// level is the endpoints of one priority. Only the eligible ones, which have a
// weight above 0, decide whether RPCs can use it.
type level struct {
	priority  uint32
	readySet  *state.ReadySet
	readySets []*state.ReadySet // the level's and those below it
	picker    *picker.Picker    // over them
	children  int
	eligible  int
	states    balancer.ConnectivityStateEvaluator // of the eligible

	// failoverExpired is set when RPCs are not to wait for the level any more: it
	// has failed, or its time is over. Once it is ready, they wait for it again.
	failoverExpired bool
	connectingSince time.Time   // zero while it is not
	failoverTimer   *time.Timer // ends the waiting
}

// state returns that of the eligible, SHUTDOWN without one.
func (l *level) state() connectivity.State {
	if l.eligible == 0 {
		return connectivity.Shutdown
	}
	return l.states.CurrentState()
}

// add counts a child in, with its state and weight; remove counts it out.
func (l *level) add(c *child) {
	l.children++
	if c.eligible() {
		l.eligible++
		l.states.RecordTransition(connectivity.Shutdown, c.state)
	}
}

func (l *level) remove(c *child) {
	l.children--
	if c.eligible() {
		l.eligible--
		l.states.RecordTransition(c.state, connectivity.Shutdown)
	}
}

// updateFailover takes up the level's state after a change.
func (l *level) updateFailover() {
	switch l.state() {
	case connectivity.Ready, connectivity.Shutdown:
		l.stopTimer()
		l.connectingSince, l.failoverExpired = time.Time{}, false
	case connectivity.TransientFailure:
		l.stopTimer()
		l.connectingSince, l.failoverExpired = time.Time{}, true
	default: // levels connect side by side, whichever RPCs wait for
		if l.connectingSince.IsZero() {
			l.connectingSince = time.Now()
		}
	}
}

// connecting reports whether the level is, and RPCs may wait for it.
func (l *level) connecting() bool {
	s := l.state()
	return !l.failoverExpired && (s == connectivity.Connecting || s == connectivity.Idle)
}

func (l *level) stopTimer() {
	if l.failoverTimer != nil {
		l.failoverTimer.Stop()
		l.failoverTimer = nil
	}
}

// atLocked returns the level of a priority. A new one has a ready set of the
// endpoint set, and no picker before pruneLocked.
func (ls *levels) atLocked(priority uint32, set *state.EndpointSet) *level {
	i, found := slices.BinarySearchFunc(ls.ordered, priority, func(l *level, p uint32) int { return cmp.Compare(l.priority, p) })
	if !found {
		ls.ordered = slices.Insert(ls.ordered, i, &level{priority: priority, readySet: set.NewReadySet(priority)})
		ls.unlinked = true
	}
	return ls.ordered[i]
}

// pruneLocked removes the levels that have no endpoints and links the others.
func (ls *levels) pruneLocked() {
	all := len(ls.ordered)
	ls.ordered = slices.DeleteFunc(ls.ordered, func(l *level) bool {
		if l.children > 0 {
			return false
		}
		l.stopTimer()
		l.readySet.Close()
		return true
	})
	if ls.unlinked || len(ls.ordered) < all {
		ls.linkLocked()
	}
}

// switchLocked gives each level a ready set of another endpoint set.
func (ls *levels) switchLocked(set *state.EndpointSet) {
	for _, l := range ls.ordered {
		l.readySet = set.NewReadySet(l.priority)
	}
	ls.linkLocked()
}

// linkLocked gives each level its picker.
func (ls *levels) linkLocked() {
	ls.unlinked = false
	readySets := make([]*state.ReadySet, len(ls.ordered))
	for i, l := range ls.ordered {
		readySets[i] = l.readySet
	}
	for i, l := range ls.ordered {
		l.readySets, l.picker = readySets[i:], picker.New(readySets[i:]...)
	}
}

// currentLocked returns the level that RPCs are to use, nil when none can be
// used, and the state of the whole.
func (ls *levels) currentLocked() (*level, connectivity.State) {
	var all balancer.ConnectivityStateEvaluator
	for i, l := range ls.ordered {
		s := l.state()
		if s == connectivity.Ready {
			return l, s
		}
		if last := i == len(ls.ordered)-1; l.connecting() && !last && ls.startFailoverLocked(l) {
			return nil, s
		}
		all.RecordTransition(connectivity.Shutdown, s)
	}
	return nil, all.CurrentState()
}

// setFailoverLocked changes how long RPCs wait for a level, from when it began to
// connect. The timers are started again when the next picker is published.
func (ls *levels) setFailoverLocked(d time.Duration) {
	if ls.failover == d {
		return
	}
	ls.failover = d
	for _, l := range ls.ordered {
		l.stopTimer()
	}
}

// startFailoverLocked reports whether there is time left to wait for l, and sees
// to it that the waiting ends.
func (ls *levels) startFailoverLocked(l *level) bool {
	left := ls.failover - time.Since(l.connectingSince)
	if left <= 0 {
		return false
	}
	if l.failoverTimer != nil {
		return true
	}
	var t *time.Timer
	t = time.AfterFunc(left, func() {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		if l.failoverTimer == t {
			l.failoverTimer, l.failoverExpired = nil, true
			ls.expired()
		}
	})
	l.failoverTimer = t
	return true
}

// childrenLocked returns how many children the levels have.
func (ls *levels) childrenLocked() int {
	n := 0
	for _, l := range ls.ordered {
		n += l.children
	}
	return n
}

// closeLocked ends the timers and lets the pickers go of the ledger.
func (ls *levels) closeLocked() {
	for _, l := range ls.ordered {
		l.stopTimer()
		l.picker.Close()
	}
	ls.ordered = nil
}
