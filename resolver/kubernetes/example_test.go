package kubernetes_test

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	_ "github.com/leastconn/grpc-leastconn/resolver/kubernetes" // k8s
)

// dial opens a channel to a service of the cluster that the program runs in,
// such as k8s:///chat.shop:grpc.
func dial(target string) (*grpc.ClientConn, error) {
	return grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		// The line that people forget. Without it one pod gets all RPCs.
		grpc.WithDefaultServiceConfig(leastconnbalancer.Config{}.ServiceConfig()))
}
