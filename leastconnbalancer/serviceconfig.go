package leastconnbalancer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// selection is the value of loadBalancingConfig.
type selection []map[string]Config

// ServiceConfig renders the service config that selects the policy with this
// configuration, for grpc.WithDefaultServiceConfig. Values out of bounds are
// rendered as they are, for grpc.NewClient to refuse. [Config.MergeInto] is for a
// service config that has more in it.
func (c Config) ServiceConfig() string {
	js, err := json.Marshal(map[string]selection{"loadBalancingConfig": {{Name: c}}})
	if err != nil { // a number that JSON lacks: whoever reads this is told
		return fmt.Sprintf(`{"loadBalancingConfig":[{%q:%q}]}`, Name, err)
	}
	return string(js)
}

// MergeInto returns a service config, as JSON, with this configuration as its policy. All
// else in it stays as it is: methodConfig with its retries and timeouts, retryThrottling,
// healthCheckConfig, and what nobody knows. What selected a policy before,
// loadBalancingConfig with all its entries and loadBalancingPolicy, is replaced: gRPC takes
// the first entry that it knows, so others would have no effect. "" is taken as "{}".
//
// It fails when the configuration is wrong, see [Config.Validate], and when serviceConfig is
// not a JSON object. What else is wrong in it, grpc.NewClient refuses.
func (c Config) MergeInto(serviceConfig string) (string, error) {
	if err := c.Validate(); err != nil {
		return "", err
	}
	all := map[string]json.RawMessage{}
	if strings.TrimSpace(serviceConfig) != "" {
		if err := json.Unmarshal([]byte(serviceConfig), &all); err != nil || all == nil {
			return "", notAnObject(serviceConfig, err)
		}
	}
	for name := range all {
		if strings.EqualFold(name, "loadBalancingConfig") || strings.EqualFold(name, "loadBalancingPolicy") {
			delete(all, name) // gRPC reads names in any case
		}
	}
	own, err := json.Marshal(selection{{Name: c}})
	if err != nil {
		return "", fmt.Errorf("%s: configuration: %w", Name, err)
	}
	all["loadBalancingConfig"] = own
	var merged bytes.Buffer
	e := json.NewEncoder(&merged)
	e.SetEscapeHTML(false)
	if err := e.Encode(all); err != nil {
		return "", fmt.Errorf("%s: service config: %w", Name, err)
	}
	return strings.TrimSpace(merged.String()), nil
}

func notAnObject(serviceConfig string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: service config %.100q: want a JSON object: %w", Name, serviceConfig, err)
	}
	return fmt.Errorf("%s: service config %.100q: want a JSON object", Name, serviceConfig)
}

// Validate returns what is wrong in the configuration, by the error that grpc.NewClient has
// for it: the field, its value and what is allowed. nil: it is right.
func (c Config) Validate() error {
	if err := c.checkNumbers(); err != nil {
		return err
	}
	js, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("%s: configuration: %w", Name, err)
	}
	_, err = parseConfig(js)
	return err
}

// checkNumbers finds the numbers that JSON lacks.
func (c Config) checkNumbers() error {
	type number struct {
		name    string
		value   *float64
		allowed string
	}
	var all []number
	if s := c.SlowStart; s != nil {
		all = append(all, number{"slowStart.minWeightPercent", s.MinWeightPercent, allowedPercent},
			number{"slowStart.aggression", s.Aggression, allowedAggression})
	}
	if r := c.Rebalance; r != nil {
		all = append(all, number{"rebalance.perSecond", r.PerSecond, allowedMovesPerSecond})
	}
	for _, n := range all {
		if n.value != nil && (math.IsNaN(*n.value) || math.IsInf(*n.value, 0)) {
			js := strconv.FormatFloat(*n.value, 'g', -1, 64)
			return fields{n.name: json.RawMessage(js)}.wrong(n.name, n.allowed)
		}
	}
	return nil
}
