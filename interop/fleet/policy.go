package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	_ "google.golang.org/grpc/balancer/weightedroundrobin" // registers weighted_round_robin

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer/orcaload" // what servers report
)

// policy is a load balancing policy that a fleet plays.
type policy struct {
	scenario.Policy
	id       string        // as -policy takes it
	label    string        // heads its line of the table
	group    string        // -policy takes it, too
	interval time.Duration // between a server's reports; 0: there are none
}

// weighted has weighted_round_robin hear of loads as often as it may weigh them.
const weighted = `{"enableOobLoadReport":true,"oobReportingPeriod":"1s","blackoutPeriod":"1s","weightUpdatePeriod":"1s"}`

// policies are those of the table, in its order.
func policies() []policy {
	request := scenario.Policies()[1] // with its default of choices
	all := []policy{
		{Policy: scenario.Policy{Name: "round_robin"}, id: "round_robin", label: "round_robin"},
		{Policy: request, id: "least_request", label: "least_request, 2 choices"},
		{Policy: scenario.Policy{Name: "weighted_round_robin", Config: weighted}, id: "weighted_round_robin",
			label: "weighted_round_robin", interval: time.Second},
		{Policy: scenario.Policy{Name: "least_conn"}, id: "least_conn", label: "least_conn alone"},
	}
	for _, interval := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second} {
		all = append(all, policy{
			Policy:   scenario.Policy{Name: "least_conn", Config: fmt.Sprintf(`{"reports":{"interval":%q}}`, interval)},
			id:       fmt.Sprintf("reports/%v", interval),
			group:    "reports",
			label:    fmt.Sprintf("least_conn, reports each %v", interval),
			interval: interval,
		})
	}
	return all
}

// selectPolicies finds those that -policy names. Without one it is all.
func selectPolicies(name string) ([]policy, error) {
	chosen := slices.DeleteFunc(policies(), func(p policy) bool { return name != "" && name != p.id && name != p.group })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-policy is %q, want one of %s", name, policyNames())
	}
	return chosen, nil
}

// policyNames is what -policy may be.
func policyNames() string {
	var names []string
	for _, p := range policies() {
		for _, name := range []string{p.group, p.id} {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}
