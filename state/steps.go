package state

import (
	"runtime"
	"sync"
	"time"
)

// A step under a ledger's mutex is over after so many units of work, and, by the
// clock, which is read now and then, after about maxStep.
const (
	stepSize = 512 // units
	maxStep  = 50 * time.Microsecond

	unitLook   = 1 // to look at something, about a tenth of a microsecond
	unitChange = 8 // to change a member
)

// steps cuts work that is not a pick, a release or a change of one member into steps.
// Between two of them others have the mutex, so that no pick waits for all of it. The
// ledger's invariants hold at the end of each step. Anything else may be another then.
type steps struct {
	mu     *sync.Mutex
	size   int
	settle func() // called before each pause
	test   func() // called at each pause
	done   int    // units since the last pause
	since  int    // units since the clock was read
	began  time.Time
}

func (l *Ledger) inSteps() steps {
	return steps{mu: l.mu, size: l.stepSize, test: l.atPause, began: time.Now()}
}

// did counts units of work as done, and lets others have the mutex if a step is over.
func (s *steps) did(units int) {
	s.done += units
	s.since += units
	if s.done < s.size {
		if s.since < 2*unitChange {
			return
		}
		if s.since = 0; time.Since(s.began) < maxStep {
			return
		}
	}
	if s.settle != nil {
		s.settle()
	}
	s.mu.Unlock()
	if s.test != nil {
		s.test()
	}
	runtime.Gosched() // who waits has it before it is taken again
	s.mu.Lock()
	s.done, s.since, s.began = 0, 0, time.Now()
}
