package leastconnbalancer

import (
	"math"
	"time"

	"google.golang.org/grpc/serviceconfig"

	"github.com/leastconn/grpc-leastconn/state"
)

// Name is the policy's name in a service config.
const Name = "least_conn"

// MaxResourceKey is the longest resource key, in bytes.
const MaxResourceKey = 1024

// Config is the policy's configuration, the value of "least_conn" in a service
// config. It round-trips through encoding/json; fields it does not know are
// ignored when read, with a warning. The zero Config is valid and holds the defaults.
//
// In it and in its objects, what is nil or zero is the default. A field is a pointer where
// zero says something else; [NewDuration] makes one. SlowStart.Window and Reports.Interval
// have no default: whoever sets the object sets them.
type Config struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	// ResourceKey names the service whose load is shared: all channels of the
	// process with the same key see each other's RPCs. At most MaxResourceKey
	// bytes. By default it is the key that the resolver sets, else the channel's
	// canonical target, such as "dns:///api.example.com:443".
	//
	// In it "{target}" stands for the canonical target, and "{cluster}", with the import
	// of package xdscluster, for the xDS cluster: "{cluster}" shares the cluster's load
	// over all targets, "{target}/{cluster}" only within one, apart from the target's other
	// clusters. Where there is no such name the key is the default, with a warning.
	ResourceKey string `json:"resourceKey,omitempty"`

	// PriorityFailover is how long RPCs wait for a priority level that is
	// connecting for the first time, or connecting again without having failed,
	// before they use the next level, from when it began to. By default 10 s; from 0 s, which is not to
	// wait, to 1 h. When all endpoints of a level have failed, RPCs do not wait.
	PriorityFailover *Duration `json:"priorityFailover,omitempty"`

	// StartupWait is how long RPCs may wait for endpoints that connect, from when a
	// priority level begins to connect with none of its endpoints ready: at first,
	// after idleness, or when all connections are lost at once. While the channel
	// has RPCs in flight, an RPC waits for an endpoint that connects and has a lower
	// score than every ready one, so that streams that open at once are spread. Nobody
	// waits for an endpoint that has failed, or that joins a list in use, or with a
	// deadline nearer than twice the rest of the time. By default 500 ms; from 0 s,
	// which turns it off, to 1 min.
	StartupWait *Duration `json:"startupWait,omitempty"`

	// FailurePenalty is how long after its start an attempt that has failed with
	// UNAVAILABLE, INTERNAL, UNKNOWN, DATA_LOSS or RESOURCE_EXHAUSTED counts on
	// its endpoint as if it were in flight still. By default 1 s; from 0 s, which
	// turns it off, to 1 min. Resolution 10 ms.
	FailurePenalty *Duration `json:"failurePenalty,omitempty"`

	// MaxInFlight caps the RPCs in flight per endpoint, of all channels of the
	// process together; at most 2³¹ − 1. By default 0, which is no cap. An
	// endpoint's own cap, which a resolver sets, wins.
	MaxInFlight uint32 `json:"maxInFlight,omitempty"`

	// OnFull says what an RPC does when no endpoint has room: wait
	// ("queue", the default) or fail with RESOURCE_EXHAUSTED ("fail").
	OnFull OnFull `json:"onFull,omitempty"`

	// MaxQueued is how many RPCs of the channel may wait at one time; further ones
	// fail with RESOURCE_EXHAUSTED. By default 1,000; from 1 to 1,000,000.
	MaxQueued *uint32 `json:"maxQueued,omitempty"`

	// StreamLimit says whether an endpoint has room for no more RPCs than its server
	// allows streams on one connection (MAX_CONCURRENT_STREAMS): "server", the default,
	// or "ignore", by which RPCs beyond that wait in the endpoint's connection.
	StreamLimit StreamLimit `json:"streamLimit,omitempty"`

	// SlowStart is off by default.
	SlowStart *SlowStart `json:"slowStart,omitempty"`

	// Rebalance is how the streams of a [Session] move. It changes nothing for other RPCs.
	Rebalance *Rebalance `json:"rebalance,omitempty"`

	// Reports is off by default. It needs the import of package orcaload.
	Reports *Reports `json:"reports,omitempty"`

	ignored string // JSON: the names of fields that are not known; "" without one
}

const (
	defaultPriorityFailover = 10 * time.Second
	maxPriorityFailover     = time.Hour
	defaultStartupWait      = 500 * time.Millisecond
	maxStartupWait          = time.Minute
)

// priorityFailover returns the duration in use. A nil Config has the defaults.
func (c *Config) priorityFailover() time.Duration {
	if c == nil {
		return defaultPriorityFailover
	}
	return valueOr((*time.Duration)(c.PriorityFailover), defaultPriorityFailover)
}

// startupWait returns the duration in use. A nil Config has the defaults.
func (c *Config) startupWait() time.Duration {
	if c == nil {
		return defaultStartupWait
	}
	return valueOr((*time.Duration)(c.StartupWait), defaultStartupWait)
}

// checkedConfigOf returns the configuration that gRPC or a parent policy hands over, nil
// without one. A parent may have made it in Go, so that nobody has checked it.
func checkedConfigOf(c serviceconfig.LoadBalancingConfig) (*Config, error) {
	cfg, _ := c.(*Config)
	if v, ok := c.(Config); ok {
		cfg = &v
	}
	if cfg == nil {
		return nil, nil
	}
	return cfg, cfg.Validate()
}

// OnFull says what an RPC does that finds no endpoint with room.
type OnFull string

const (
	// OnFullQueue lets it wait for room, in order of arrival.
	OnFullQueue OnFull = "queue"
	// OnFullFail fails it with RESOURCE_EXHAUSTED.
	OnFullFail OnFull = "fail"
)

// StreamLimit says whose limit of streams per connection is kept.
type StreamLimit string

const (
	// StreamLimitServer keeps the one that a server sends, and each change of it. An
	// RPC beyond it goes to another endpoint or waits in order of arrival, where it may
	// wait for room; where it may not, it waits in a connection. It never fails for it.
	StreamLimitServer StreamLimit = "server"
	// StreamLimitIgnore keeps none.
	StreamLimitIgnore StreamLimit = "ignore"
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

// Reports has servers tell how much load they have of all their clients, by ORCA's out-of-band
// reports, so that RPCs go where the fleet has the fewest in flight. Servers report with package
// serverload, or with any other ORCA library under the names that docs/fleet.md has. With servers
// that do not, all is as without it.
type Reports struct {
	// Interval is how often each server is asked to tell, from 100 ms to 1 h. Channels of the
	// process that share their load ask once, at the shortest interval of theirs.
	Interval Duration `json:"interval"`
}

// Bounds and defaults of the fields.
const (
	defaultFailurePenalty   = time.Second
	maxFailurePenalty       = time.Minute
	maxMaxInFlight          = math.MaxInt32
	defaultMaxQueued        = 1000
	maxMaxQueued            = 1_000_000
	maxSlowStartWindow      = time.Hour
	defaultMinWeightPercent = 10
	defaultAggression       = 1
	minAggression           = 0.01
	maxAggression           = 100
	minReportsInterval      = 100 * time.Millisecond
	maxReportsInterval      = time.Hour
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

// ignoresStreamLimit reports whether servers' limits of streams do not count.
func (c *Config) ignoresStreamLimit() bool { return c != nil && c.StreamLimit == StreamLimitIgnore }

// reportsInterval returns how often servers are asked for their load; 0: never.
func (c *Config) reportsInterval() time.Duration {
	if c == nil || c.Reports == nil {
		return 0
	}
	return time.Duration(c.Reports.Interval)
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
