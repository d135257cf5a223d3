package leastconnbalancer

import (
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/grpc/serviceconfig"
)

// Name is the policy's name in a service config.
const Name = "least_conn"

// MaxResourceKey is the longest resource key, in bytes.
const MaxResourceKey = 1024

// Config is the policy's configuration, the value of "least_conn" in a service
// config. It round-trips through encoding/json; fields it does not know are
// ignored when read. The zero Config is valid and holds the defaults.
type Config struct {
	serviceconfig.LoadBalancingConfig `json:"-"`

	// ResourceKey names the service whose load is shared: all channels of the
	// process with the same key see each other's RPCs. At most MaxResourceKey
	// bytes. By default it is the key that the resolver sets, else the channel's
	// canonical target, such as "dns:///api.example.com:443".
	ResourceKey string `json:"resourceKey,omitempty"`

	// PriorityFailover is how long RPCs wait for a priority level that is
	// connecting for the first time, or connecting again without having failed,
	// before they use the next level. By default 10 s; from 0 s, which is not to
	// wait, to 1 h. When all endpoints of a level have failed, RPCs do not wait.
	PriorityFailover *Duration `json:"priorityFailover,omitempty"`

	// FailurePenalty is how long after its start an attempt that has failed with
	// UNAVAILABLE, INTERNAL, UNKNOWN, DATA_LOSS or RESOURCE_EXHAUSTED counts on
	// its endpoint as if it were in flight still. By default 1 s; from 0 s, which
	// turns it off, to 1 min. Resolution 10 ms.
	FailurePenalty *Duration `json:"failurePenalty,omitempty"`

	// MaxInFlight caps the RPCs in flight per endpoint, of all channels of the
	// process together; at most 2³¹ − 1. By default 0, which is no cap. An
	// endpoint's own cap, which a resolver sets, wins.
	MaxInFlight uint32 `json:"maxInFlight,omitempty"`

	// OnFull says what an RPC does when all endpoints are at their caps: wait
	// ("queue", the default) or fail with RESOURCE_EXHAUSTED ("fail").
	OnFull OnFull `json:"onFull,omitempty"`

	// MaxQueued is how many RPCs of the channel may wait at one time; further ones
	// fail with RESOURCE_EXHAUSTED. By default 10,000; from 1 to 1,000,000.
	MaxQueued *uint32 `json:"maxQueued,omitempty"`

	// SlowStart is off by default.
	SlowStart *SlowStart `json:"slowStart,omitempty"`
}

const (
	defaultPriorityFailover = 10 * time.Second
	maxPriorityFailover     = time.Hour
)

// priorityFailover returns the duration in use. A nil Config has the defaults.
func (c *Config) priorityFailover() time.Duration {
	if c == nil {
		return defaultPriorityFailover
	}
	return valueOr((*time.Duration)(c.PriorityFailover), defaultPriorityFailover)
}

// ServiceConfig renders the service config that selects the policy with this
// configuration, for grpc.WithDefaultServiceConfig. Values out of bounds are
// rendered as they are, for grpc.NewClient to refuse.
func (c Config) ServiceConfig() string {
	type policy map[string]Config
	js, err := json.Marshal(map[string][]policy{"loadBalancingConfig": {{Name: c}}})
	if err != nil { // SlowStart has a number that JSON lacks: whoever reads this is told
		return fmt.Sprintf(`{"loadBalancingConfig":[{%q:%q}]}`, Name, err)
	}
	return string(js)
}

// configOf returns the configuration that gRPC or a parent policy hands over,
// nil without one.
func configOf(c serviceconfig.LoadBalancingConfig) *Config {
	if v, ok := c.(Config); ok {
		return &v
	}
	cfg, _ := c.(*Config)
	return cfg
}
