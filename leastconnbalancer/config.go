package leastconnbalancer

import (
	"encoding/json"
	"fmt"

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
}

// ServiceConfig renders the service config that selects the policy with this
// configuration, for grpc.WithDefaultServiceConfig.
func (c Config) ServiceConfig() string {
	type policy map[string]Config
	// A Config always marshals: it has no values that JSON lacks.
	js, _ := json.Marshal(map[string][]policy{"loadBalancingConfig": {{Name: c}}})
	return string(js)
}

// parseConfig reads a Config; "null" and nothing at all are the zero Config.
func parseConfig(js json.RawMessage) (*Config, error) {
	var fields struct {
		ResourceKey json.RawMessage `json:"resourceKey"`
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
	return c, nil
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
