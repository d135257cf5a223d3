package leastconnbalancer

import (
	"encoding/json"
	"fmt"
	"time"
)

// fields are the members of a JSON object by name, for errors that name them.
type fields map[string]json.RawMessage

// parseConfig reads a Config; "null" and nothing at all are the zero Config.
func parseConfig(js json.RawMessage) (*Config, error) {
	c := &Config{}
	if len(js) == 0 {
		return c, nil
	}
	var f fields
	if err := json.Unmarshal(js, &f); err != nil {
		return nil, fmt.Errorf("%s: configuration %s: want a JSON object: %w", Name, js, err)
	}
	if err := f.read("resourceKey", &c.ResourceKey, "a string"); err != nil {
		return nil, err
	}
	if n := len(c.ResourceKey); n > MaxResourceKey {
		return nil, fmt.Errorf("%s: field resourceKey: value %.32q… has %d bytes, want at most %d", Name, c.ResourceKey, n, MaxResourceKey)
	}
	if err := f.readDuration("priorityFailover", &c.PriorityFailover, maxPriorityFailover); err != nil {
		return nil, err
	}
	if err := f.readDuration("failurePenalty", &c.FailurePenalty, maxFailurePenalty); err != nil {
		return nil, err
	}
	if err := f.readCaps(c); err != nil {
		return nil, err
	}
	if err := f.readSlowStart(c); err != nil {
		return nil, err
	}
	f.readIgnored(c)
	return c, nil
}

func (f fields) readCaps(c *Config) error {
	allowed := fmt.Sprintf("a whole number from 0, no cap, to %d", maxMaxInFlight)
	if err := f.read("maxInFlight", &c.MaxInFlight, allowed); err != nil {
		return err
	}
	if c.MaxInFlight > maxMaxInFlight {
		return f.wrong("maxInFlight", allowed)
	}
	allowed = fmt.Sprintf("%q or %q", OnFullQueue, OnFullFail)
	var onFull *OnFull
	if err := f.read("onFull", &onFull, allowed); err != nil {
		return err
	}
	if onFull != nil {
		if c.OnFull = *onFull; c.OnFull != OnFullQueue && c.OnFull != OnFullFail {
			return f.wrong("onFull", allowed)
		}
	}
	allowed = fmt.Sprintf("a whole number from 1 to %d", maxMaxQueued)
	if err := f.read("maxQueued", &c.MaxQueued, allowed); err != nil {
		return err
	}
	if n := c.MaxQueued; n != nil && (*n < 1 || *n > maxMaxQueued) {
		return f.wrong("maxQueued", allowed)
	}
	return nil
}

func (f fields) readSlowStart(c *Config) error {
	var within fields
	if err := f.read("slowStart", &within, `an object such as {"window": "30s"}`); err != nil || within == nil {
		return err
	}
	s := fields{}
	for name, js := range within {
		s["slowStart."+name] = js
	}
	var window *Duration
	if err := s.readDuration("slowStart.window", &window, maxSlowStartWindow); err != nil {
		return err
	}
	if window == nil {
		return fmt.Errorf("%s: field slowStart.window: value missing: want a duration, such as \"30s\"", Name)
	}
	c.SlowStart = &SlowStart{Window: *window}
	allowed := "a number above 0, at most 100"
	if err := s.read("slowStart.minWeightPercent", &c.SlowStart.MinWeightPercent, allowed); err != nil {
		return err
	}
	if p := c.SlowStart.MinWeightPercent; p != nil && (*p <= 0 || *p > 100) {
		return s.wrong("slowStart.minWeightPercent", allowed)
	}
	allowed = fmt.Sprintf("a number from %v to %v", minAggression, maxAggression)
	if err := s.read("slowStart.aggression", &c.SlowStart.Aggression, allowed); err != nil {
		return err
	}
	if a := c.SlowStart.Aggression; a != nil && (*a < minAggression || *a > maxAggression) {
		return s.wrong("slowStart.aggression", allowed)
	}
	return nil
}

// readDuration reads a duration from 0 to most.
func (f fields) readDuration(name string, dst **Duration, most time.Duration) error {
	allowed := fmt.Sprintf("a duration from \"0s\" to %s, such as \"1.5s\"", Duration(most).json())
	if err := f.read(name, dst, allowed); err != nil {
		return err
	}
	if d := *dst; d != nil && (*d < 0 || time.Duration(*d) > most) {
		return f.wrong(name, allowed)
	}
	return nil
}

// read reads one field into dst. An absent field leaves dst as it is.
func (f fields) read(name string, dst any, allowed string) error {
	if js := f[name]; js != nil && json.Unmarshal(js, dst) != nil {
		return f.wrong(name, allowed)
	}
	return nil
}

// wrong names the field, its value and what is allowed.
func (f fields) wrong(name, allowed string) error {
	return fmt.Errorf("%s: field %s: value %s: want %s", Name, name, f[name], allowed)
}
