package main

import (
	"bufio"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// results holds what every run of each benchmark measured, by the benchmark's name and then by unit.
type results map[string]map[string][]float64

var procsSuffix = regexp.MustCompile(`-\d+$`) // go test ends a name with GOMAXPROCS

// parse reads the output of go test -bench and passes over all that is no result.
func parse(r io.Reader) (results, error) {
	res := results{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		if _, err := strconv.Atoi(fields[1]); err != nil {
			continue
		}
		name := procsSuffix.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		if res[name] == nil {
			res[name] = map[string][]float64{}
		}
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				res[name][fields[i+1]] = append(res[name][fields[i+1]], v)
			}
		}
	}
	return res, lines.Err()
}

// median is that of the runs of one benchmark; found is false if none has reported the unit.
func (res results) median(name, unit string) (m float64, found bool) {
	runs := slices.Sorted(slices.Values(res[name][unit]))
	n := len(runs)
	if n == 0 {
		return 0, false
	}
	return (runs[(n-1)/2] + runs[n/2]) / 2, true
}
