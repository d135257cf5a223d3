package leastconnbalancer

import (
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// Rebalance says how streams move that opt in by a [Session], by [Run], [Follow] or
// [MoveStreams]: as many as needed, and no more.
type Rebalance struct {
	// PerSecond is how many streams of the channel are asked to move in a second so that loads become
	// level. By default 10; from 0, which turns all moves off, to 1,000. Streams that
	// cannot stay are asked within DrainWithin, however many there are.
	PerSecond *float64 `json:"perSecond,omitempty"`

	// MinAge is how old a stream is before it is asked to move so that loads become level. By
	// default 30 s; from 0 s to 24 h.
	MinAge *Duration `json:"minAge,omitempty"`

	// DrainWithin is the time in which streams are asked, each at a random moment,
	// that cannot stay where they are: on endpoints of weight 0, drained, or not listed any more, of a lower
	// priority level than the one in use, or not healthy for 5 s, and on connections that the server is closing. By
	// default 10 s; from 0 s, which is at once, to 1 h.
	DrainWithin *Duration `json:"drainWithin,omitempty"`
}

const (
	defaultMovesPerSecond = 10
	maxMovesPerSecond     = 1000
	defaultMinAge         = 30 * time.Second
	maxMinAge             = 24 * time.Hour
	defaultDrainWithin    = 10 * time.Second
	maxDrainWithin        = time.Hour
)

// rebalance returns what is in use. A nil Config has the defaults.
func (c *Config) rebalance() state.Rebalance {
	var r Rebalance
	if c != nil && c.Rebalance != nil {
		r = *c.Rebalance
	}
	return state.Rebalance{
		PerSecond:   valueOr(r.PerSecond, defaultMovesPerSecond),
		MinAge:      valueOr((*time.Duration)(r.MinAge), defaultMinAge),
		DrainWithin: valueOr((*time.Duration)(r.DrainWithin), defaultDrainWithin),
	}
}

func (f fields) readRebalance(c *Config) error {
	within, err := f.readObject("rebalance", `an object such as {"perSecond": 10}`)
	if err != nil || within == nil {
		return err
	}
	r := &Rebalance{}
	c.Rebalance = r
	if err := within.read("rebalance.perSecond", &r.PerSecond, allowedMovesPerSecond); err != nil {
		return err
	}
	if n := r.PerSecond; n != nil && !(*n >= 0 && *n <= maxMovesPerSecond) {
		return within.wrong("rebalance.perSecond", allowedMovesPerSecond)
	}
	if err := within.readDuration("rebalance.minAge", &r.MinAge, maxMinAge); err != nil {
		return err
	}
	return within.readDuration("rebalance.drainWithin", &r.DrainWithin, maxDrainWithin)
}
