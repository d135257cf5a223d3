package main

import (
	"context"
	"time"
)

// sampleEach is how often the servers' counts are looked at.
const sampleEach = 50 * time.Millisecond

// mean is one over time.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(x float64) { m.sum += x; m.n++ }

func (m mean) value() float64 {
	if m.n == 0 {
		return 0
	}
	return m.sum / float64(m.n)
}

// filling is how a server fills that has come.
type filling struct {
	Filled bool    `json:"filled"`       // it has had nine tenths of the mean
	After  float64 `json:"afterSeconds"` // it came, if so
	Peak   float64 `json:"peakOverMean"` // its highest load
	began  time.Time
}

// meter watches a fleet's loads.
type meter struct {
	*fleet
	cv, held  mean
	steady    mean // cv before the first change
	newcomer  filling
	restarted filling
}

// begin forgets what has been measured.
func (m *meter) begin() { m.cv, m.held = mean{}, mean{} }

// watch samples for so long.
func (m *meter) watch(ctx context.Context, d time.Duration) error {
	return m.each(ctx, d, func([]float64, float64) {})
}

// firstStream is how long a server that has come may wait for its first stream, beyond the time that it is watched: on a
// machine that is busy, or in a play that is short, clients may not have heard of it yet.
const firstStream = 20 * time.Second

// follow does so and watches a server that has just come.
func (m *meter) follow(ctx context.Context, f *filling, server int, d time.Duration) error {
	f.began = time.Now()
	look := func(loads []float64, mean float64) {
		over := loads[server] / mean
		f.Peak = max(f.Peak, over)
		if over >= 0.9 && !f.Filled {
			f.Filled, f.After = true, time.Since(f.began).Seconds()
		}
	}
	err := m.each(ctx, d, look)
	for end := time.Now().Add(firstStream); err == nil && f.Peak == 0 && time.Now().Before(end); {
		err = m.each(ctx, sampleEach, look)
	}
	return err
}

func (m *meter) each(ctx context.Context, d time.Duration, look func(loads []float64, mean float64)) error {
	ticker := time.NewTicker(sampleEach)
	defer ticker.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		loads, sum, cv := m.loads()
		m.cv.add(cv)
		m.held.add(sum)
		if sum > 0 {
			look(loads, sum/float64(len(loads)))
		}
	}
	return nil
}

func (m *meter) result() result {
	return result{
		Policy: m.id, label: m.label, CV: m.steady.value(), CVInAll: m.cv.value(), Streams: m.held.value(),
		Newcomer: m.newcomer, Restarted: m.restarted, Errors: []string{},
	}
}
