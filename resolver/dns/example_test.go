package dns_test

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	_ "github.com/leastconn/grpc-leastconn/resolver/dns"
)

// The name is looked up every 5 s. The parameters are no part of the canonical
// target, by which channels of a process share their load.
func Example() {
	conn, err := grpc.NewClient("dns-poll:///api.example.com:50051?interval=5s",
		grpc.WithDefaultServiceConfig(leastconnbalancer.Config{}.ServiceConfig()),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(conn.CanonicalTarget())
	// Output: dns-poll:///api.example.com:50051
}
