package kubernetes

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc/resolver"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/leastconn/grpc-leastconn/resolver/kubernetes/internal/target"
)

// Scheme is the scheme of the targets that this package resolves.
const Scheme = target.Scheme

func init() { resolver.Register(&builder{connect: inCluster}) }

// Options are what targets do not say.
type Options struct {
	// Namespace is that of targets that name none: 1 to 63 lower case letters,
	// digits and hyphens. Default: that of the pod that the program runs in, else
	// "default".
	Namespace string
	// Zone is the zone of targets that name none, such as "eu-1a": endpoints of
	// other zones have the second priority. It is a value that the nodes' label
	// topology.kubernetes.io/zone may have. Default: none, and one priority.
	Zone string
}

// NewBuilder returns a builder whose resolvers ask the API server by client,
// such as clientset.DiscoveryV1() of client-go, for grpc.WithResolvers. What is
// wrong with the options or the client, RPCs fail with. The client stays the
// caller's; it must be safe for concurrent use, as client-go's are.
func NewBuilder[S EndpointSlices](client interface{ EndpointSlices(namespace string) S }, opts Options) resolver.Builder {
	return &builder{opts: opts, connect: func() (connection, error) {
		if client == nil {
			return nil, errors.New("client: value nil: want one, such as clientset.DiscoveryV1()")
		}
		return func(namespace string) EndpointSlices { return client.EndpointSlices(namespace) }, nil
	}}
}

// builder makes a resolver for each channel.
type builder struct {
	opts    Options
	connect func() (connection, error)
	backoff *wait.Backoff // between attempts at the API server; nil: client-go's
}

var _ resolver.AuthorityOverrider = (*builder)(nil)

// Scheme is part of resolver.Builder.
func (*builder) Scheme() string { return Scheme }

// Build starts to watch the target's service. It fails if the target is not
// valid, or without a client; not if the API server does not answer.
func (b *builder) Build(t resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	opts, err := b.options()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Scheme, err)
	}
	parsed, err := target.Parse(t.URL, target.Target{Namespace: opts.Namespace, Zone: opts.Zone})
	if err != nil {
		return nil, err
	}
	client, err := b.connect()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Scheme, err)
	}
	r := newServiceResolver(parsed, cc)
	r.start(newSource(parsed, client(parsed.Namespace), b.backoff))
	return r, nil
}

// OverrideAuthority returns what certificates are checked against: the target
// without its port. For a target that Build refuses it is some valid authority.
func (*builder) OverrideAuthority(t resolver.Target) string {
	name, _, _ := strings.Cut(t.Endpoint(), ":")
	for label := range strings.SplitSeq(name, ".") {
		if target.CheckLabel("", label) != nil {
			return "localhost"
		}
	}
	return name
}

// options are those that were given, with the default namespace.
func (b *builder) options() (Options, error) {
	opts := b.opts
	if opts.Namespace == "" {
		opts.Namespace = podNamespace(namespaceFile)
	} else if err := target.CheckLabel("Options.Namespace", opts.Namespace); err != nil {
		return opts, err
	}
	if opts.Zone != "" {
		return opts, target.CheckZone("Options.Zone", opts.Zone)
	}
	return opts, nil
}

// namespaceFile is where Kubernetes tells a pod its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// podNamespace reads the namespace of the pod.
func podNamespace(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return "default"
	}
	return cmp.Or(strings.TrimSpace(string(data)), "default")
}

const (
	// settle is how long an endpoint that no slice has any more stays in use. The
	// controller moves an endpoint by two writes, one for each slice, and tries the
	// second again after a second if it fails.
	settle = 2 * time.Second
	// pause is the shortest time between two lists for the channel. The first change after a
	// quiet time is passed on at once.
	pause = 100 * time.Millisecond
)
