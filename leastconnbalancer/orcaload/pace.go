package orcaload

import (
	"sync"
	"time"
)

// pace passes on the reports of a stream, at most four in an interval. Of more, as of late ones that come
// at once, it passes on the last.
type pace struct {
	listener *listener

	// mu is held while a report is passed on, so that none is after end. What takes up reports comes after it.
	mu       sync.Mutex
	last     time.Time // when one was passed on
	timer    *time.Timer
	waiting  bool // for the timer, to pass these on
	inFlight int64
	rps      float64
}

// take passes on a report, or keeps it until it may be.
func (p *pace) take(inFlight int64, rps float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight, p.rps = inFlight, rps
	if p.waiting {
		return
	}
	if rest := p.listener.interval/4 - time.Since(p.last); rest > 0 {
		p.waiting, p.timer = true, time.AfterFunc(rest, p.due)
		return
	}
	p.passLocked()
}

// due passes on the report that has waited.
func (p *pace) due() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting {
		p.waiting = false
		p.passLocked()
	}
}

func (p *pace) passLocked() {
	p.last = time.Now()
	p.listener.report(p.inFlight, p.rps)
}

// end passes on nothing any more.
func (p *pace) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = false
	if p.timer != nil {
		p.timer.Stop()
	}
}
