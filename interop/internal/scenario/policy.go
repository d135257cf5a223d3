package scenario

import (
	"fmt"
	"strings"

	_ "google.golang.org/grpc/balancer/leastrequest" // registers least_request_experimental

	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer" // registers least_conn
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Policy is a load balancing policy in one configuration. Policies are comparable.
type Policy struct {
	Name    string                 // as a service config has it
	Choices int                    // choiceCount of least_request_experimental; 0 for a policy without choices
	Label   string                 // heads the policy's column: Name, maybe shortened
	Detail  string                 // tells policies with one Label apart; may be empty
	Config  string                 // its configuration, JSON; empty: none, or its choices
	Judged  bool                   // a session of this policy that is misplaced is an error, not a finding
	Below   *leastconntest.Sources // bring the lists of its channels; nil: their own resolvers do
}

// Policies returns those that are compared; least_conn, the last, is judged.
func Policies() []Policy {
	const request, label = "least_request_experimental", "least_request"
	return []Policy{
		{Name: "round_robin", Label: "round_robin"},
		{Name: request, Choices: 2, Label: label, Detail: "2 choices (default)"},
		{Name: request, Choices: 10, Label: label, Detail: "10 choices"},
		{Name: "least_conn", Label: "least_conn", Judged: true},
	}
}

// ID names the policy like no other one: its name, with "/" and its choices if it has any.
func (p Policy) ID() string {
	if p.Choices == 0 {
		return p.Name
	}
	return fmt.Sprintf("%s/%d", p.Name, p.Choices)
}

// Title is the label with the detail.
func (p Policy) Title() string {
	if p.Detail == "" {
		return p.Label
	}
	return p.Label + " with " + p.Detail
}

// ServiceConfig selects the policy. Fields are further fields of the service config, each as "name":value in JSON.
func (p Policy) ServiceConfig(fields ...string) string {
	config := p.Config
	switch {
	case config != "":
	case p.Choices > 0:
		config = fmt.Sprintf(`{"choiceCount":%d}`, p.Choices)
	default:
		config = "{}"
	}
	balancing := fmt.Sprintf(`"loadBalancingConfig":[{%q:%s}]`, p.Name, config)
	return "{" + strings.Join(append([]string{balancing}, fields...), ",") + "}"
}

// Dial makes a channel with the policy, unless cfg has a service config of its own.
func (p Policy) Dial(cfg leastconntest.ChannelConfig) (*leastconntest.Channel, error) {
	if cfg.ServiceConfig == "" {
		cfg.ServiceConfig = p.ServiceConfig()
	}
	if p.Below != nil {
		cfg.Source = *p.Below
	}
	return leastconntest.Dial(cfg)
}
