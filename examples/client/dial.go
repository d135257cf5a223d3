package main

import (
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health" // checks the servers' health
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	_ "github.com/leastconn/grpc-leastconn/resolver/dns"  // registers dns-poll and srv
	_ "github.com/leastconn/grpc-leastconn/resolver/file" // registers nodes
)

// serviceConfig selects the policy, leaves out servers that say they are not serving, and retries RPCs that a server could
// not take. It is the default: a resolver that has a service config of its own overrides it.
const serviceConfig = `{
	"loadBalancingConfig": [{"least_conn": {}}],
	"healthCheckConfig": {"serviceName": ""},
	"methodConfig": [{
		"name": [{}],
		"retryPolicy": {
			"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE"]
		}
	}]
}`

// dial makes a channel. The interceptors let a retry go to another server than the attempts before it.
func dial(target string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(target, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithChainUnaryInterceptor(leastconnbalancer.UnaryClientInterceptor()),
		grpc.WithChainStreamInterceptor(leastconnbalancer.StreamClientInterceptor()),
	}, opts...)...)
}

// dialList makes a channel to addresses, separated by commas. Update replaces them.
func dialList(addrs string, opts ...grpc.DialOption) (conn *grpc.ClientConn, update func(addrs string), err error) {
	state := func(addrs string) (s resolver.State) {
		for addr := range strings.SplitSeq(addrs, ",") {
			s.Endpoints = append(s.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: addr}}})
		}
		return s
	}
	r := manual.NewBuilderWithScheme("list")
	r.InitialState(state(addrs))
	conn, err = dial("list:///servers", append(opts, grpc.WithResolvers(r))...)
	return conn, func(addrs string) { r.UpdateState(state(addrs)) }, err
}
