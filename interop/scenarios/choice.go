package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"
)

// selectPolicies finds the policies that -policy names: one by its ID, or all of one name. Without one it is all.
func selectPolicies(name string) ([]trial.Policy, error) {
	var chosen []trial.Policy
	for _, p := range trial.Policies() {
		if name == "" || name == p.Name || name == p.ID() {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-policy is %q, want one of %s", name, policyNames())
	}
	return chosen, nil
}

// policyNames is what -policy may be.
func policyNames() string {
	var names []string
	for _, p := range trial.Policies() {
		for _, name := range []string{p.Name, p.ID()} {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}

// selectRows finds the rows whose names -run matches.
func selectRows(pattern string) ([]row, error) {
	matches, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("-run is %q, want a regular expression: %w", pattern, err)
	}
	var chosen []row
	for _, r := range table() {
		if matches.MatchString(r.name) {
			chosen = append(chosen, r)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-run is %q, which no scenario's name matches; see -h", pattern)
	}
	return chosen, nil
}
