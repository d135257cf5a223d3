package leastconnbalancer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

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
