package main

import (
	_ "google.golang.org/grpc/balancer/leastrequest" // registers least_request_experimental

	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer" // registers least_conn
)

// policy is a column of the table.
type policy struct {
	name   string
	detail string
	config string
	judged bool // a misplaced session of this policy fails the run
}

var policies = []policy{
	{
		name:   "round_robin",
		config: `{"loadBalancingConfig":[{"round_robin":{}}]}`,
	},
	{
		name:   "least_request",
		detail: "2 choices (default)",
		config: `{"loadBalancingConfig":[{"least_request_experimental":{}}]}`,
	},
	{
		name:   "least_request",
		detail: "10 choices",
		config: `{"loadBalancingConfig":[{"least_request_experimental":{"choiceCount":10}}]}`,
	},
	{
		name:   "least_conn",
		config: `{"loadBalancingConfig":[{"least_conn":{}}]}`,
		judged: true,
	},
}

// title tells policies of one name apart.
func (p policy) title() string {
	if p.detail == "" {
		return p.name
	}
	return p.name + " with " + p.detail
}
