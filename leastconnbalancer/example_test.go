package leastconnbalancer_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// A client needs the import and the service config.
func Example() {
	server, err := leastconntest.StartNode(leastconntest.Options{Name: "a"})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	conn, err := grpc.NewClient("dns:///"+server.Addr(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(leastconnbalancer.Config{}.ServiceConfig()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	client := grpc_testing.NewTestServiceClient(conn)
	answer, err := client.UnaryCall(context.Background(), &grpc_testing.SimpleRequest{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("answered by", answer.Username)
	// Output: answered by a
}

// A service config with retries and health checks, to which the policy is added.
func ExampleConfig_MergeInto() {
	serviceConfig, err := leastconnbalancer.Config{MaxInFlight: 100}.MergeInto(`{
		"healthCheckConfig": {"serviceName": ""},
		"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.1s",
			"maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]
	}`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.ReplaceAll(serviceConfig, `,"`, ",\n\""))
	// Output:
	// {"healthCheckConfig":{"serviceName":""},
	// "loadBalancingConfig":[{"least_conn":{"maxInFlight":100}}],
	// "methodConfig":[{"name":[{}],
	// "retryPolicy":{"maxAttempts":3,
	// "initialBackoff":"0.1s",
	// "maxBackoff":"1s",
	// "backoffMultiplier":2,
	// "retryableStatusCodes":["UNAVAILABLE"]}}]}
}

// Two nodes hold two streams each when a third one joins: the next two streams
// go there, and then all have the same again.
func Example_scaleOut() {
	ctx := context.Background()
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, "a", "b", "c")
	if err != nil {
		log.Fatal(err)
	}
	defer leastconntest.CloseNodes(nodes...)
	channel, err := leastconntest.Dial(leastconntest.ChannelConfig{
		ServiceConfig: leastconnbalancer.Config{}.ServiceConfig(),
		Endpoints:     leastconntest.Endpoints(nodes[:2]...),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer channel.Close()
	open := func(n int) map[string]int {
		streams, err := channel.OpenN(ctx, n)
		if err != nil {
			log.Fatal(err)
		}
		return leastconntest.Counts(streams)
	}

	if err := channel.WaitServed(ctx, nodes[:2]...); err != nil {
		log.Fatal(err)
	}
	fmt.Println("4 streams:", open(4))
	if err := channel.UpdateNodes(nodes...); err != nil {
		log.Fatal(err)
	}
	if err := channel.WaitServed(ctx, nodes[2]); err != nil {
		log.Fatal(err)
	}
	fmt.Println("2 more after c has joined:", open(2))
	fmt.Println("3 more:", open(3))
	// Output:
	// 4 streams: map[a:2 b:2]
	// 2 more after c has joined: map[c:2]
	// 3 more: map[a:1 b:1 c:1]
}

// Channels with the same resource key share their load, whatever their targets.
func ExampleConfig_ServiceConfig() {
	fmt.Println(leastconnbalancer.Config{ResourceKey: "chat"}.ServiceConfig())
	// Output: {"loadBalancingConfig":[{"least_conn":{"resourceKey":"chat"}}]}
}

// A program looks at the load that its channels have.
func ExampleSnapshots() {
	ctx := context.Background()
	servers, err := leastconntest.StartNodes(leastconntest.Options{}, "a")
	if err != nil {
		log.Fatal(err)
	}
	defer leastconntest.CloseNodes(servers...)
	channel, err := leastconntest.Dial(leastconntest.ChannelConfig{
		ServiceConfig: leastconnbalancer.Config{ResourceKey: "shop"}.ServiceConfig(),
		Endpoints:     leastconntest.Endpoints(servers...),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer channel.Close()
	streams, err := channel.OpenN(ctx, 3)
	if err != nil {
		log.Fatal(err)
	}

	for _, s := range leastconnbalancer.Snapshots() {
		if s.ResourceKey != "shop" {
			continue
		}
		for _, ep := range s.Endpoints {
			fmt.Println(ep.State == leastconnbalancer.EndpointReady, ep.InFlight, "in flight,", ep.Picks, "picks")
		}
	}
	if err := leastconntest.EndAll(streams); err != nil {
		log.Fatal(err)
	}
	// Output: true 3 in flight, 3 picks
}
