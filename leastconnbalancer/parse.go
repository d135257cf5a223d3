package leastconnbalancer

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/reports"
)

// What the fields take that are fractions.
var (
	allowedPercent        = "a number above 0, at most 100"
	allowedAggression     = fmt.Sprintf("a number from %v to %v", minAggression, maxAggression)
	allowedMovesPerSecond = fmt.Sprintf("a number from 0, no moves, to %d", maxMovesPerSecond)
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
	if err := f.readResourceKey(c); err != nil {
		return nil, err
	}
	if err := f.readDuration("priorityFailover", &c.PriorityFailover, maxPriorityFailover); err != nil {
		return nil, err
	}
	if err := f.readDuration("startupWait", &c.StartupWait, maxStartupWait); err != nil {
		return nil, err
	}
	if err := f.readDuration("failurePenalty", &c.FailurePenalty, maxFailurePenalty); err != nil {
		return nil, err
	}
	if err := f.readCaps(c); err != nil {
		return nil, err
	}
	if err := readOneOf(f, "streamLimit", &c.StreamLimit, StreamLimitServer, StreamLimitIgnore); err != nil {
		return nil, err
	}
	if err := f.readSlowStart(c); err != nil {
		return nil, err
	}
	if err := f.readRebalance(c); err != nil {
		return nil, err
	}
	if err := f.readReports(c); err != nil {
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
	if err := readOneOf(f, "onFull", &c.OnFull, OnFullQueue, OnFullFail); err != nil {
		return err
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
	s, err := f.readObject("slowStart", `an object such as {"window": "30s"}`)
	if err != nil || s == nil {
		return err
	}
	var window *Duration
	if err := s.readDuration("slowStart.window", &window, maxSlowStartWindow); err != nil {
		return err
	}
	if window == nil {
		return fmt.Errorf("%s: field slowStart.window: value missing: want a duration, such as \"30s\"", Name)
	}
	c.SlowStart = &SlowStart{Window: *window}
	if err := s.read("slowStart.minWeightPercent", &c.SlowStart.MinWeightPercent, allowedPercent); err != nil {
		return err
	}
	if p := c.SlowStart.MinWeightPercent; p != nil && (*p <= 0 || *p > 100) {
		return s.wrong("slowStart.minWeightPercent", allowedPercent)
	}
	if err := s.read("slowStart.aggression", &c.SlowStart.Aggression, allowedAggression); err != nil {
		return err
	}
	if a := c.SlowStart.Aggression; a != nil && (*a < minAggression || *a > maxAggression) {
		return s.wrong("slowStart.aggression", allowedAggression)
	}
	return nil
}

// readObject reads the members of an object, by the names that they have in the
// configuration. An absent one has none.
func (f fields) readObject(name, allowed string) (fields, error) {
	var within fields
	if err := f.read(name, &within, allowed); err != nil || within == nil {
		return nil, err
	}
	named := fields{}
	for n, js := range within {
		named[name+"."+n] = js
	}
	return named, nil
}

func (f fields) readReports(c *Config) error {
	const name = "reports.interval"
	s, err := f.readObject("reports", `an object such as {"interval": "10s"}`)
	if err != nil || s == nil {
		return err
	}
	allowed := fmt.Sprintf("a duration from \"100ms\" to %s, such as \"10s\"", Duration(maxReportsInterval).json())
	var interval *Duration
	if err := s.read(name, &interval, allowed); err != nil {
		return err
	}
	if interval == nil {
		return fmt.Errorf("%s: field %s: value missing: want %s", Name, name, allowed)
	}
	if d := time.Duration(*interval); d < minReportsInterval || d > maxReportsInterval {
		return s.wrong(name, allowed)
	}
	if !reports.Linked() {
		return f.wrong("reports", `no such field in a program without import _ "github.com/leastconn/grpc-leastconn/leastconnbalancer/orcaload"`)
	}
	c.Reports = &Reports{Interval: *interval}
	return nil
}

// readOneOf reads one of two words; "" is none, unless it is absent.
func readOneOf[T ~string](f fields, name string, dst *T, one, other T) error {
	allowed := fmt.Sprintf("%q or %q", one, other)
	var word *T
	if err := f.read(name, &word, allowed); err != nil {
		return err
	}
	if word == nil {
		return nil
	}
	if *word != one && *word != other {
		return f.wrong(name, allowed)
	}
	*dst = *word
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
