package leastconnbalancer

import (
	"math"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// OnFull says what an RPC does that finds all endpoints at their caps.
type OnFull string

const (
	// OnFullQueue lets it wait for room, in order of arrival.
	OnFullQueue OnFull = "queue"
	// OnFullFail fails it with RESOURCE_EXHAUSTED.
	OnFullFail OnFull = "fail"
)

// SlowStart lets an endpoint that is new, or back from a failure, take up load
// over a window of time: its weight is multiplied by
// max(minWeightPercent/100, (max(age, 1 s) / window)^(1/aggression)), as Envoy
// defines it, until the window is over.
type SlowStart struct {
	// Window is how long the weight rises: from 0 s, which is not at all, to 1 h.
	Window Duration `json:"window"`
	// MinWeightPercent is the part of the weight to begin with, in percent: above
	// 0, at most 100; by default 10.
	MinWeightPercent *float64 `json:"minWeightPercent,omitempty"`
	// Aggression shapes the rise: 0.01 to 100, by default 1, which is linear; with
	// more it is steeper at first.
	Aggression *float64 `json:"aggression,omitempty"`
}

// Bounds and defaults of the fields.
const (
	defaultFailurePenalty   = time.Second
	maxFailurePenalty       = time.Minute
	maxMaxInFlight          = math.MaxInt32
	defaultMaxQueued        = 10_000
	maxMaxQueued            = 1_000_000
	maxSlowStartWindow      = time.Hour
	defaultMinWeightPercent = 10
	defaultAggression       = 1
	minAggression           = 0.01
	maxAggression           = 100
)

// guards returns the guards in use, without the wake-up. A nil Config has the
// defaults.
func (c *Config) guards() state.Guards {
	if c == nil {
		c = &Config{}
	}
	g := state.Guards{FailurePenalty: valueOr((*time.Duration)(c.FailurePenalty), defaultFailurePenalty)}
	if c.OnFull != OnFullFail {
		g.MaxQueued = int(valueOr(c.MaxQueued, defaultMaxQueued))
	}
	if s := c.SlowStart; s != nil {
		g.SlowStart = state.SlowStart{
			Window:           time.Duration(s.Window),
			MinWeightPercent: valueOr(s.MinWeightPercent, defaultMinWeightPercent),
			Aggression:       valueOr(s.Aggression, defaultAggression),
		}
	}
	return g
}

// maxInFlight returns the cap of endpoints that have none of their own; 0: none.
func (c *Config) maxInFlight() uint32 {
	if c == nil {
		return 0
	}
	return c.MaxInFlight
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
