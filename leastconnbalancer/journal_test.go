package leastconnbalancer_test

import (
	"maps"
	"strings"
	"sync"

	estats "google.golang.org/grpc/experimental/stats"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// journal is a recorder that tells what the policy has given it so far, without
// asking for more.
type journal struct {
	*leastconntest.Recorder
	keeps bool // reporters, whatever is done to stop them

	mu       sync.Mutex
	counts   map[string]int
	kept     []estats.AsyncMetricReporter
	stopped  int
	recorded int // calls
}

func newJournal() *journal {
	return &journal{Recorder: leastconntest.NewRecorder(), counts: map[string]int{}}
}

func (j *journal) RecordInt64Count(h *estats.Int64CountHandle, by int64, labels ...string) {
	j.Recorder.RecordInt64Count(h, by, labels...)
	name, ours := strings.CutPrefix(h.Descriptor().Name, metric(""))
	if !ours {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.recorded++
	if by != 0 {
		j.counts[name] += int(by)
	}
}

func (j *journal) RegisterAsyncReporter(r estats.AsyncMetricReporter, of ...estats.AsyncMetric) func() {
	stop := j.Recorder.RegisterAsyncReporter(r, of...)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.keeps {
		j.kept = append(j.kept, r)
		stop = func() {}
	}
	return func() {
		stop()
		j.mu.Lock()
		defer j.mu.Unlock()
		j.stopped++
	}
}

// seen returns the counters as recorded so far.
func (j *journal) seen() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.counts)
}
