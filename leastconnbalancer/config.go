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
}

const (
	defaultPriorityFailover = 10 * time.Second
	maxPriorityFailover     = time.Hour
)

// priorityFailover returns the duration in use. A nil Config has the defaults.
func (c *Config) priorityFailover() time.Duration {
	if c == nil || c.PriorityFailover == nil {
		return defaultPriorityFailover
	}
	return time.Duration(*c.PriorityFailover)
}

// ServiceConfig renders the service config that selects the policy with this
// configuration, for grpc.WithDefaultServiceConfig.
func (c Config) ServiceConfig() string {
	type policy map[string]Config
	// A Config always marshals: it has no values that JSON lacks.
	js, _ := json.Marshal(map[string][]policy{"loadBalancingConfig": {{Name: c}}})
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

// parseConfig reads a Config; "null" and nothing at all are the zero Config.
func parseConfig(js json.RawMessage) (*Config, error) {
	var fields struct {
		ResourceKey      json.RawMessage `json:"resourceKey"`
		PriorityFailover json.RawMessage `json:"priorityFailover"`
	}
	if len(js) == 0 {
		return &Config{}, nil
	}
	if err := json.Unmarshal(js, &fields); err != nil {
		return nil, fmt.Errorf("%s: configuration %s: want a JSON object: %w", Name, js, err)
	}
	c := &Config{}
	if err := readField("resourceKey", fields.ResourceKey, &c.ResourceKey, "a string"); err != nil {
		return nil, err
	}
	if n := len(c.ResourceKey); n > MaxResourceKey {
		return nil, fmt.Errorf("%s: field resourceKey: value %.32q… has %d bytes, want at most %d", Name, c.ResourceKey, n, MaxResourceKey)
	}
	if err := readDuration("priorityFailover", fields.PriorityFailover, &c.PriorityFailover, maxPriorityFailover); err != nil {
		return nil, err
	}
	return c, nil
}

// readDuration reads a duration from 0 to most.
func readDuration(name string, js json.RawMessage, dst **Duration, most time.Duration) error {
	allowed := fmt.Sprintf("a duration from \"0s\" to %s, such as \"1.5s\"", Duration(most).json())
	if err := readField(name, js, dst, allowed); err != nil {
		return err
	}
	if d := *dst; d != nil && (*d < 0 || time.Duration(*d) > most) {
		return fmt.Errorf("%s: field %s: value %s: want %s", Name, name, js, allowed)
	}
	return nil
}

// readField reads one field into dst; it names the field, its value and what is
// allowed when that fails. An absent field leaves dst as it is.
func readField(name string, js json.RawMessage, dst any, allowed string) error {
	if js == nil {
		return nil
	}
	if err := json.Unmarshal(js, dst); err != nil {
		return fmt.Errorf("%s: field %s: value %s: want %s", Name, name, js, allowed)
	}
	return nil
}
