package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// params are the key=value parts of a benchmark's name.
type params map[string]string

// limit bounds a measurement of least_conn, or its ratio to that of another benchmark.
type limit struct {
	what  string
	most  float64
	bench string // the benchmark without its parameters
	where params // the runs that it holds for; alternatives are separated by |
	over  params // what to change in a name to get the denominator's; none: no ratio
	unit  string // "" is ns/op
}

const (
	small = "1|3|10|100|1000"
	large = "1000|10000"
)

var limits = []limit{
	{"Pick + Done over least_request(2)", 1, "Pick",
		params{"weights": "equal", "views": "1", "procs": "1", "gogc": "100"}, params{"policy": "least_request_2"}, ""},
	{"the same, 2 procs", 1, "Pick",
		params{"weights": "equal", "views": "1", "procs": "2", "gogc": "100"}, params{"policy": "least_request_2"}, ""},
	{"Pick + Done over round_robin, GOGC=1000", 8, "Pick",
		params{"weights": "equal", "views": "1", "procs": "1", "gogc": "1000"}, params{"policy": "round_robin"}, ""},
	{"Pick + Done over round_robin, n ≤ 1000", 11, "Pick",
		params{"weights": "equal", "views": "1", "procs": "1", "gogc": "100", "n": small}, params{"policy": "round_robin"}, ""},
	{"the same, 2 procs", 11, "Pick",
		params{"weights": "equal", "views": "1", "procs": "2", "gogc": "100", "n": small}, params{"policy": "round_robin"}, ""},
	{"Pick + Done over round_robin, n=10000", 13, "Pick",
		params{"weights": "equal", "views": "1", "procs": "1", "gogc": "100", "n": "10000"}, params{"policy": "round_robin"}, ""},
	{"the same, 2 procs", 13, "Pick",
		params{"weights": "equal", "views": "1", "procs": "2", "gogc": "100", "n": "10000"}, params{"policy": "round_robin"}, ""},
	{"n=10000 over n=10", 1.6, "Pick", params{"weights": "equal", "views": "1", "n": "10000"}, params{"n": "10"}, ""},
	{"four distinct weights over equal, n=1000", 1.8, "Pick", params{"weights": "four", "n": "1000"}, params{"weights": "equal"}, ""},
	{"all weights distinct over equal, n=10000", 6, "Pick", params{"weights": "distinct", "n": "10000"}, params{"weights": "equal"}, ""},
	{"allocations per pick", 1, "Pick", nil, nil, "allocs/op"},
	{"bytes per pick", 48, "Pick", nil, nil, "B/op"},
	{"50 views over 1, n=100", 20, "Pick", params{"views": "50", "n": "100"}, params{"views": "1"}, ""},
	{"bring-up over round_robin, n=1000", 0.06, "BringUp", params{"n": "1000"}, params{"policy": "round_robin"}, ""},
	{"bring-up over round_robin, n=10000", 0.01, "BringUp", params{"n": "10000"}, params{"policy": "round_robin"}, ""},
	{"unchanged update over round_robin, n ≥ 1000", 0.1, "Update",
		params{"kind": "unchanged", "n": large}, params{"policy": "round_robin"}, ""},
	{"one more endpoint over round_robin, n ≥ 1000", 0.25, "Update",
		params{"kind": "one_more", "n": large}, params{"policy": "round_robin"}, ""},
}

// worst returns the largest value that the limit applies to and the parameters that it leaves open there. Benchmarks
// whose counterpart was not run do not count.
func (l limit) worst(res results) (worst float64, at string, found bool) {
	unit := l.unit
	if unit == "" {
		unit = "ns/op"
	}
	for _, name := range slices.Sorted(maps.Keys(res)) {
		if !l.holdsFor(name) {
			continue
		}
		value, ok := res.median(name, unit)
		if ok && l.over != nil {
			var base float64
			base, ok = res.median(l.counterpart(name), unit)
			ok = ok && base > 0
			value /= base
		}
		if ok && (!found || value > worst) {
			worst, at, found = value, l.open(name), true
		}
	}
	return worst, at, found
}

// holdsFor says whether the name is one of least_conn that the limit is about.
func (l limit) holdsFor(name string) bool {
	bench, rest, _ := strings.Cut(name, "/")
	if bench != l.bench {
		return false
	}
	has := params{}
	for part := range strings.SplitSeq(rest, "/") {
		key, value, _ := strings.Cut(part, "=")
		has[key] = value
	}
	for key, values := range l.where {
		if !slices.Contains(strings.Split(values, "|"), has[key]) {
			return false
		}
	}
	return has["policy"] == "least_conn"
}

// counterpart returns the name of the benchmark in the denominator.
func (l limit) counterpart(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		key, _, _ := strings.Cut(part, "=")
		if value, ok := l.over[key]; ok {
			parts[i] = key + "=" + value
		}
	}
	return strings.Join(parts, "/")
}

// open returns the parts of the name that the limit does not fix to one value.
func (l limit) open(name string) string {
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		key, value, isParam := strings.Cut(part, "=")
		if isParam && key != "policy" && l.where[key] != value {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}

// amount writes v in the limit's unit.
func (l limit) amount(v float64) string {
	number := strconv.FormatFloat(v, 'g', 3, 64)
	switch l.unit {
	case "":
		return number + " ×"
	case "B/op":
		return number + " B"
	}
	return number
}
