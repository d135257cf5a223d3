// Package file resolves targets of the scheme "nodes" from a file that lists
// the nodes of a service, and follows the file as it changes. Importing it
// registers the scheme:
//
//	import _ "github.com/leastconn/grpc-leastconn/resolver/file"
//
//	conn, err := grpc.NewClient("nodes:///etc/app/nodes.yaml", …)
//
// The path in the target is percent-decoded. Without slashes after the colon,
// as in "nodes:conf/nodes.yaml", it is relative to the working directory at the
// time the channel leaves idle mode. An authority ("nodes://host/path"), a query
// and a fragment are refused: RPCs fail with a text that says so.
//
// # The file
//
// One YAML document, of which JSON is a kind, in UTF-8, of at most 4 MiB and
// 100,000 nodes:
//
//	resourceKey: orders           # whose load is shared; default: the file's path as an absolute target
//	authority: orders.example     # whom certificates must name; default: see below
//	serviceConfig:                # a gRPC service config; default: the channel's own
//	  loadBalancingConfig: [{least_conn: {}}]
//	nodes:                        # required; [] is an empty list, for which RPCs fail
//	  - address: 10.0.0.1:50051
//	  - addresses: ["10.0.0.2:50051", "[2001:db8::2]:50051"]
//	    weight: 3                 # 0 to 2147483648, default 1; 0 drains: no new RPCs, streams live on
//	    drain: true               # as weight 0, whatever the weight; default: false
//	    maxInFlight: 100          # 0 to 2147483647, 0: no cap; default: the policy's
//	    priority: 1               # 0 to 4294967295, default 0, which is the highest
//	    id: pod-7                 # default: the addresses are the identity
//	    serverName: b.example     # default: authority
//
// Each node is one endpoint, also with several addresses (dual stack), of which
// gRPC uses the one that connects first. An address is one of
//
//   - host:port, where host is an IPv4 address, a host name, or an IPv6 address
//     in brackets, with a zone if it needs one ([fe80::1%eth0]:443), and port
//     is 1 to 65535. In YAML an address with brackets has to be in quotes. A host
//     name is looked up by the dialer, at each connection: all its addresses
//     are one node;
//   - unix:/path, unix:///path or, relative to the working directory, unix:path;
//   - unix-abstract:name, on Linux.
//
// Anchors and aliases work, merge keys ("<<") do not. Unlike elsewhere, an
// address or id that is listed twice is an error: a list that a person keeps has
// no use for repeats.
//
// # Changes
//
// The file is read again some 100 ms after the last of a burst of changes and
// within a second of the first: to the file itself, to its name (a rename over
// it), and to symbolic links on its path (a mounted Kubernetes ConfigMap). It is
// also read when gRPC asks for it, and every 5 s in any case, for file systems
// that do not tell, such as NFS, and systems that are out of inotify instances.
// While the file or its directory is missing, the nearest directory above that
// exists is watched. Same contents change nothing.
//
// A file that is replaced by rename is never seen half-written. One that is
// written in place may be, if its writer pauses: a half that is no valid list
// counts for nothing, one that is valid holds until the next change.
//
// A file that cannot be read or is not as above is refused as a whole. The last
// good list stays in use, and gRPC gets one error that names the file, the line
// and what is allowed: RPCs fail with it if there was no good list yet, and gRPC
// logs it as a warning, which shows with GRPC_GO_LOG_SEVERITY_LEVEL=warning. It
// is reported once, until it is another one or a good list came between.
//
// # Service config
//
// A serviceConfig that is no object is such an error. One that gRPC refuses, as
// for a policy that is not linked, is handed to gRPC as an invalid one, beside
// the nodes: they are taken up under the config that was valid before, and if
// there was none, RPCs fail with the reason. gRPC itself keeps a service config
// when a later file has none, and it ignores all of them for channels with
// grpc.WithDisableServiceConfig.
//
// # Authority and TLS
//
// A connection's :authority, which is also the name that the certificate must be
// valid for, is the first there is of
//
//   - the one of grpc.WithAuthority;
//   - the node's serverName;
//   - the ServerName in the channel's TLS credentials;
//   - the file's authority;
//   - the address itself, as if it had been dialled: its host and port, without
//     a zone; "localhost" for a unix socket.
//
// Both keys take a host name, an IPv4 address or an IPv6 address in brackets,
// with or without a port. Changing the name of an address connects it anew;
// changing weight or priority does not.
//
// # Proxies
//
// If the environment names an HTTPS proxy for an address, gRPC takes the name,
// weight, priority and id away before the policy sees them, and puts the
// proxy's address instead of the node's. Use grpc.WithNoProxy or NO_PROXY.
//
// # Concurrency and lifetime
//
// A channel that is not idle has one goroutine here, another while it reads the
// file and, while it can watch the file, a third one and one of fsnotify with one
// inotify instance. They have ended, and the channel is not called any more, when
// gRPC has closed the resolver, as it does when the channel closes or becomes
// idle. Closing does not wait for a file system that does not answer, such as a
// dead mount: what waits for it there ends when it answers.
package file
