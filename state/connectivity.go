package state

import (
	"strings"
	"time"
	"unicode/utf8"
)

// MaxErrorText is how much of a connection error is kept, in bytes.
const MaxErrorText = 500

// Connectivity is what a balancer says of a member's connection. It is for snapshots:
// nothing is chosen by it.
type Connectivity struct {
	State string    // by gRPC's name, such as "CONNECTING"
	Since time.Time // when it became so

	lastError string
	failedAt  time.Time
}

// Failed notes why a connection has failed now, or is not healthy: of a long text the
// first MaxErrorText bytes.
func (c *Connectivity) Failed(err error) {
	c.lastError, c.failedAt = shortened(err.Error()), time.Now()
}

// ConnectivitySnapshot is a [Connectivity] at one moment.
type ConnectivitySnapshot struct {
	State            string  `json:"state"`
	SinceSeconds     float64 `json:"sinceSeconds"`
	LastError        string  `json:"lastError,omitempty"`        // the last one, even if it is over
	LastErrorSeconds float64 `json:"lastErrorSeconds,omitempty"` // how long ago it was
}

// SetConnectivity sets what snapshots show of the member's connection.
func (m *Member) SetConnectivity(c Connectivity) {
	m.set.ledger.mu.Lock()
	defer m.set.ledger.mu.Unlock()
	m.connectivity = c
}

// shortened returns a text of at most MaxErrorText bytes, which keeps no longer one alive.
func shortened(text string) string {
	const more = "…"
	if len(text) <= MaxErrorText {
		return text
	}
	end := MaxErrorText - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.Clone(text[:end]) + more
}

func (c Connectivity) snapshot(now time.Time) ConnectivitySnapshot {
	if c.State == "" {
		return ConnectivitySnapshot{}
	}
	s := ConnectivitySnapshot{State: c.State, SinceSeconds: now.Sub(c.Since).Seconds(), LastError: c.lastError}
	if c.lastError != "" {
		s.LastErrorSeconds = now.Sub(c.failedAt).Seconds()
	}
	return s
}
