package kubernetes

import (
	"context"
	"fmt"
	"sync"

	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// EndpointSlices is what this package asks of an API server, about one
// namespace: a part of client-go's EndpointSliceInterface. That interface itself
// links all APIs that Kubernetes has.
type EndpointSlices interface {
	List(ctx context.Context, opts metav1.ListOptions) (*discovery.EndpointSliceList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// connection asks about a namespace.
type connection func(namespace string) EndpointSlices

// cluster is the one client of the process for the cluster that it runs in.
var cluster struct {
	sync.Mutex
	connection
}

// inCluster returns the client for the cluster that the program runs in, by the
// service account of its pod. If there is none it looks again at the next call.
func inCluster() (connection, error) {
	cluster.Lock()
	defer cluster.Unlock()
	if cluster.connection != nil {
		return cluster.connection, nil
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("no pod's service account: %w; elsewhere use kubernetes.NewBuilder", err)
	}
	cluster.connection, err = connect(config)
	return cluster.connection, err
}

// connect returns a client that knows of EndpointSlices and nothing else.
func connect(config *rest.Config) (connection, error) {
	scheme := runtime.NewScheme()
	if err := discovery.AddToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, discovery.SchemeGroupVersion)
	config = rest.CopyConfig(config)
	config.APIPath = "/apis"
	config.GroupVersion = &discovery.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	// A channel's requests are few, and must not wait for those of others. What
	// fails is tried again with a backoff.
	config.QPS = -1
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return func(namespace string) EndpointSlices { return restClient{client, namespace} }, nil
}

// restClient asks about one namespace.
type restClient struct {
	client    rest.Interface
	namespace string
}

func (c restClient) get(opts metav1.ListOptions) *rest.Request {
	return c.client.Get().Namespace(c.namespace).Resource("endpointslices").VersionedParams(&opts, metav1.ParameterCodec)
}

func (c restClient) List(ctx context.Context, opts metav1.ListOptions) (*discovery.EndpointSliceList, error) {
	list := &discovery.EndpointSliceList{}
	return list, c.get(opts).Do(ctx).Into(list)
}

func (c restClient) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return c.get(opts).Watch(ctx)
}
