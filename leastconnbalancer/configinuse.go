package leastconnbalancer

import (
	"encoding/json"

	"github.com/leastconn/grpc-leastconn/state"
)

// inUse renders the configuration as it works, for snapshots: with the resource key in
// use and with the defaults. What is off is 0 or null. A nil Config has the defaults.
func (c *Config) inUse(key string) json.RawMessage {
	if c == nil {
		c = &Config{}
	}
	type fields Config
	all := struct {
		fields
		MaxInFlight uint32     `json:"maxInFlight"` // in place of the one that is left out when it is 0
		SlowStart   *SlowStart `json:"slowStart"`
		Reports     *Reports   `json:"reports"`
		Ignored     []string   `json:"ignoredFields,omitempty"`
	}{fields: fields(*c), MaxInFlight: c.maxInFlight(), Reports: c.Reports, Ignored: c.ignoredNames()}
	guards, queued := c.guards(), valueOr(c.MaxQueued, defaultMaxQueued)
	all.ResourceKey = key
	all.PriorityFailover, all.StartupWait = NewDuration(c.priorityFailover()), NewDuration(c.startupWait())
	all.FailurePenalty, all.MaxQueued = NewDuration(guards.FailurePenalty), &queued
	if all.OnFull == "" {
		all.OnFull = OnFullQueue
	}
	if all.StreamLimit == "" {
		all.StreamLimit = StreamLimitServer
	}
	if s := guards.SlowStart; s != (state.SlowStart{}) {
		all.SlowStart = &SlowStart{Window: Duration(s.Window), MinWeightPercent: &s.MinWeightPercent, Aggression: &s.Aggression}
	}
	r := c.rebalance()
	all.Rebalance = &Rebalance{PerSecond: &r.PerSecond, MinAge: NewDuration(r.MinAge), DrainWithin: NewDuration(r.DrainWithin)}
	js, err := json.Marshal(all)
	if err != nil { // a number that JSON lacks, which no configuration that was read has
		return nil
	}
	return js
}
