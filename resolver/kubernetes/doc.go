// Package kubernetes resolves targets of the scheme "k8s" by watching the
// EndpointSlices of a Service, with client-go. It is a module of its own.
// Importing it registers the scheme for programs that run in a cluster:
//
//	import _ "github.com/leastconn/grpc-leastconn/resolver/kubernetes"
//
//	conn, err := grpc.NewClient("k8s:///chat.shop:grpc", …)
//
// Others, or programs with a client of their own, use [NewBuilder]. The targets
// are
//
//	k8s:///service[.namespace][:port][?zone=name]
//
// The namespace is that of the program's pod by default, else "default". The port
// is a number or a name; without one, a slice must have exactly one TCP port. A
// number is the pod's port, not the Service's. Each slice is read by itself: pods
// of one Service may differ in the number that a name stands for, and slices
// without the port are left out, with a warning in gRPC's log.
//
// A bad target, such as one with an authority or with an unknown parameter, is
// refused: RPCs fail with a text that names what is wrong, its value and what is
// allowed.
//
// # Endpoints
//
// All slices of the Service are one list. A pod is known by its UID: it is one
// endpoint in whichever slice it is, in several of them at once, and with an
// address of each family, of which gRPC uses the one that connects first. What a
// slice lists without an object behind it is known by its address. Slices of names
// (FQDN) are left out, with a warning.
//
// Endpoints that are ready, or of which that is unknown, are used. One that is
// terminating and still serves has weight 0: it gets no new RPCs, and sessions
// move away. All others are left out. If slices do not agree on an endpoint, the
// better condition holds: while it moves between them, one of them is out of date.
// An address that two endpoints have belongs to the one in the better condition.
//
// With a zone, the endpoints that are for it have priority 0 and all others
// priority 1: by the zones of its hints, else by its own zone. Without it all have
// priority 0.
//
// # Changes
//
// What joins or changes is passed on at once, and again 100 ms after that at the
// earliest, with all that came meanwhile. What no slice has any more stays in use
// for 2 s: an endpoint moves to another slice by two events, of which the one that
// takes it away may be first, and streams would be told to move for nothing. The
// controller that writes slices tries again after a second if its second write
// fails. An endpoint that a slice calls unready is taken away at once, and so is
// an address that another endpoint has now. An address that is missing stays as
// long, unless the endpoint has another one of the same family.
//
// # Failures
//
// A Service without endpoints in use is an empty list: RPCs fail with a text that
// says why, streams live on. The same text fails RPCs of a Service that does not
// exist, until it does. While the API server does not answer, or forbids it, the
// last list stays. The error is reported to the channel, once, which fails RPCs
// with it if there was no list yet. client-go tries again after 1 s and up to a
// minute later, lists anew when its version is too old, and logs by klog what it
// tells there. A request that is not answered within 30 s is given up, and so is a
// watch 30 s after the time when the server was to end it, 5 to 10 minutes: what
// stands between may be silent for ever.
//
// The client needs list and watch of endpointslices, API group discovery.k8s.io,
// in the Service's namespace; docs/kubernetes.md has the role.
//
// # Authority
//
// Certificates are checked against the target as it was dialled, without its port:
// chat.shop. grpc.WithAuthority sets another name.
//
// # Proxies
//
// If the environment names an HTTPS proxy for an address, gRPC takes UID, weight
// and priority away before the policy sees them, and puts the proxy's address
// instead of the endpoint's. Use grpc.WithNoProxy or NO_PROXY.
//
// # Concurrency and lifetime
//
// Channels whose targets mean the same share their load: the resource key is the
// target with its namespace and port and without its zone. Each channel that is
// not idle has a watch of its own; all of a process use one client for the
// cluster. Closing ends the watch and its goroutines; the channel is not called
// after it. All functions are safe for concurrent use.
package kubernetes
