package integration

import (
	"github.com/sercand/kuberesolver/v6"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// dialInCluster opens a channel to a service of the cluster that the program
// runs in, such as kubernetes:///chat.shop:grpc.
func dialInCluster(target string) (*grpc.ClientConn, error) {
	api, err := kuberesolver.NewInClusterK8sClient()
	if err != nil {
		return nil, err
	}
	return dialKubernetes(api, target)
}

// dialKubernetes opens a channel to a service that the API server knows.
func dialKubernetes(api kuberesolver.K8sClient, target string) (*grpc.ClientConn, error) {
	return grpc.NewClient(target,
		grpc.WithResolvers(kuberesolver.NewBuilder(api, "kubernetes")),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		// The line that people forget. Without it one pod gets all RPCs.
		grpc.WithDefaultServiceConfig(leastconnbalancer.Config{}.ServiceConfig()))
}
