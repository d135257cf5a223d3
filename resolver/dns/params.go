package dns

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// params are a target's parameters. The package comment says what they mean.
type params struct {
	interval    time.Duration
	minInterval time.Duration
	timeout     time.Duration
	family      int // 4 or 6; 0 is both
	emptyAfter  int
}

// defaults returns what holds for the parameters that a target does not have.
func defaults() params {
	return params{interval: 10 * time.Second, minInterval: 2 * time.Second, timeout: 10 * time.Second, emptyAfter: 3}
}

const (
	minDuration   = 100 * time.Millisecond
	maxEmptyAfter = 1000
)

// param is how one parameter is read.
type param struct {
	want string // what is allowed
	read func(p *params, value string) bool
}

// parameters holds the parameters by name.
var parameters = map[string]param{
	"interval":    duration(time.Hour, "1h", func(p *params) *time.Duration { return &p.interval }),
	"minInterval": duration(time.Hour, "1h", func(p *params) *time.Duration { return &p.minInterval }),
	"timeout":     duration(time.Minute, "1m", func(p *params) *time.Duration { return &p.timeout }),
	"family": {"4 or 6", func(p *params, value string) bool {
		p.family = map[string]int{"4": 4, "6": 6}[value]
		return p.family != 0
	}},
	"emptyAfter": {fmt.Sprint("a whole number from 1 to ", maxEmptyAfter), func(p *params, value string) (ok bool) {
		var err error
		p.emptyAfter, err = strconv.Atoi(value)
		return err == nil && p.emptyAfter >= 1 && p.emptyAfter <= maxEmptyAfter
	}},
}

// duration is a parameter from minDuration to most.
func duration(most time.Duration, written string, field func(*params) *time.Duration) param {
	return param{"a duration from 100ms to " + written + ", such as 10s", func(p *params, value string) bool {
		d, err := time.ParseDuration(value)
		*field(p) = d
		return err == nil && d >= minDuration && d <= most
	}}
}

// parseParams reads the query of a target. An error names the parameter, its
// value and what is allowed.
func parseParams(query string) (params, error) {
	p := defaults()
	values, err := url.ParseQuery(query)
	if err != nil {
		return p, fmt.Errorf("parameters %q: %w", query, err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name][0]
		k, ok := parameters[name]
		switch {
		case !ok:
			return p, fmt.Errorf("parameter %s: value %q: no such parameter, want one of %s",
				name, value, strings.Join(slices.Sorted(maps.Keys(parameters)), ", "))
		case len(values[name]) > 1:
			return p, fmt.Errorf("parameter %s: values %q: want one value", name, values[name])
		case !k.read(&p, value):
			return p, fmt.Errorf("parameter %s: value %q: want %s", name, value, k.want)
		}
	}
	return p, nil
}
