package leastconnbalancer

import (
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/leastconn/grpc-leastconn/picker"
)

// startup is a level's wait for endpoints that connect. It begins when none of the
// level's endpoints is READY: with the first list, and when all connections are lost.
// Those that connect then, and have not failed, are waited for: RPCs may be reserved
// to them, so that streams that open at once do not all go to the endpoint that is
// READY first. Those that connect while another is READY are not.
type startup struct {
	ready   int                 // eligible children that are READY
	pending map[*child]struct{} // eligible ones that connect and are not waited for yet
	waited  map[*child]struct{} // those that are
	since   time.Time
	until   time.Time
	timer   *time.Timer // ends the waiting; nil while nobody is waited for
}

// add counts an eligible child in, with its state; remove counts it out.
func (s *startup) add(c *child) {
	_, waited := s.waited[c]
	switch {
	case c.state == connectivity.Ready:
		s.ready++
	case c.fresh && !waited:
		if s.pending == nil {
			s.pending = map[*child]struct{}{}
		}
		s.pending[c] = struct{}{}
	}
}

func (s *startup) remove(c *child) {
	if c.state == connectivity.Ready {
		s.ready--
	}
	delete(s.pending, c)
}

// updateFresh notes whether c may be waited for, now that its state is s: it is new or
// has lost its connection, and has not failed since.
func (c *child) updateFresh(s connectivity.State) {
	switch s {
	case connectivity.Ready, connectivity.TransientFailure, connectivity.Shutdown:
		c.fresh = false
	default:
		c.fresh = c.fresh || c.state == connectivity.Ready
	}
}

// connectedLocked ends the waiting for c, which is READY or not to be waited for.
func (l *level) connectedLocked(c *child) {
	s := &l.startup
	if _, ok := s.waited[c]; !ok {
		return
	}
	delete(s.waited, c)
	if c.state != connectivity.Ready {
		l.readySet.Remove(c.member)
	}
	if len(s.waited) == 0 {
		s.stopTimer()
	}
}

// waitLocked takes up that c is waited for with another weight.
func (l *level) waitLocked(c *child) {
	if _, ok := l.startup.waited[c]; ok {
		l.readySet.SetConnecting(c.member, c.endpoint.facts.weight, l.startup.until)
	}
}

// updateStartupLocked lets RPCs wait for the children of l that connect, if none is
// READY. The time runs from when the first of them began to.
func (ls *levels) updateStartupLocked(l *level) {
	s := &l.startup
	if s.ready > 0 || len(s.pending) == 0 {
		return
	}
	if ls.startupWait == 0 {
		for c := range s.pending {
			c.fresh = false
		}
		s.pending = nil
		return
	}
	if s.timer == nil {
		s.since = time.Now()
		ls.startStartupTimerLocked(l)
	}
	if s.waited == nil {
		s.waited = map[*child]struct{}{}
	}
	for c := range s.pending {
		s.waited[c] = struct{}{}
		l.waitLocked(c)
	}
	s.pending = nil
}

// updateStartupsLocked does so for all levels.
func (ls *levels) updateStartupsLocked() {
	for _, l := range ls.ordered {
		ls.updateStartupLocked(l)
	}
}

// setStartupWaitLocked changes how long RPCs wait, from when they began to.
func (ls *levels) setStartupWaitLocked(d time.Duration) {
	if ls.startupWait == d {
		return
	}
	ls.startupWait = d
	for _, l := range ls.ordered {
		if l.startup.timer == nil {
			continue
		}
		l.startup.stopTimer()
		ls.startStartupTimerLocked(l)
		for c := range l.startup.waited {
			l.waitLocked(c)
		}
	}
}

// startStartupTimerLocked sees to it that the waiting ends in time.
func (ls *levels) startStartupTimerLocked(l *level) {
	s := &l.startup
	s.until = s.since.Add(ls.startupWait)
	var t *time.Timer
	t = time.AfterFunc(time.Until(s.until), func() {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		if s.timer == t {
			l.endStartupLocked()
			ls.expired()
		}
	})
	s.timer = t
}

func (s *startup) stopTimer() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// endStartupLocked ends the waiting: RPCs choose among those that are READY.
func (l *level) endStartupLocked() {
	s := &l.startup
	s.stopTimer()
	for c := range s.waited {
		c.fresh = false
		l.readySet.Remove(c.member)
	}
	s.waited = nil
}

// wakeInterval is the least time between two pickers that are published only to wake
// RPCs, while endpoints connect: each of them wakes all that wait.
const wakeInterval = 10 * time.Millisecond

// wakes spreads the pickers that are published only to wake RPCs. The balancer's mu
// guards it.
type wakes struct {
	picker *picker.Picker // of the level that was published last; nil when none was
	at     time.Time
	timer  *time.Timer // publishes what was put off
}

// putOffWakeLocked reports whether the picker, which may have been published, will be so
// at the next interval.
func (b *leastConn) putOffWakeLocked(p *picker.Picker) bool {
	w := &b.wakes
	if p != w.picker || !b.load.set.Starting() {
		return false
	}
	left := wakeInterval - time.Since(w.at)
	if left <= 0 {
		return false
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(left, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			w.timer = nil
			b.publishLocked()
		})
	}
	return true
}

// published notes what was, nil when it is no level's.
func (w *wakes) published(p *picker.Picker) {
	w.stop()
	w.picker, w.at = p, time.Now()
}

func (w *wakes) stop() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}
