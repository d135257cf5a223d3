package serverload

import (
	"sync"
	"time"
)

// How long a rate is measured over, and the time between two samples.
const (
	window   = 10 * time.Second
	spacing  = time.Second
	capacity = int(window/spacing) + 1
)

// rate measures how many RPCs begin per second, over the last ten seconds or since the start.
type rate struct {
	mu      sync.Mutex
	samples [capacity]sample // as a ring
	n       int              // samples ever
}

// sample is how many RPCs had begun at a time.
type sample struct {
	at    time.Time
	begun int64
}

func (r *rate) start(now time.Time) { r.add(sample{at: now}) }

func (r *rate) add(s sample) {
	r.samples[r.n%capacity] = s
	r.n++
}

// perSecond takes a sample, which must be the last one ever or older than none, and returns the rate.
func (r *rate) perSecond(begun int64, now time.Time) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.samples[(r.n-1)%capacity].at) >= spacing {
		r.add(sample{now, begun})
	}
	from := r.samples[(r.n-1)%capacity]
	for i := r.n - 2; i >= max(0, r.n-capacity) && now.Sub(from.at) < window; i-- {
		from = r.samples[i%capacity]
	}
	elapsed := max(now.Sub(from.at), spacing) // at the start a second: the first few say little
	return max(0, float64(begun-from.begun)/elapsed.Seconds())
}
