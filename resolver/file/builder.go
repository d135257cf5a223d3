package file

import "google.golang.org/grpc/resolver"

// Scheme is the scheme of the targets that this package resolves.
const Scheme = "nodes"

// localhost is the authority of a channel while no file says another.
const localhost = "localhost"

func init() { resolver.Register(builder{}) }

// builder makes a resolver for each channel.
type builder struct{}

// Scheme is part of resolver.Builder.
func (builder) Scheme() string { return Scheme }

// Build starts to follow the target's file. It fails if the target names none.
func (builder) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	path, err := pathOf(target)
	if err != nil {
		return nil, err
	}
	r := newNodeFile(path, cc, opts)
	r.start(newWatch(path))
	return r, nil
}

// OverrideAuthority returns the authority that the file has now, "localhost"
// without one. It is the channel's for good, so addresses carry the file's later
// ones: see [source.serverName].
func (builder) OverrideAuthority(target resolver.Target) string {
	path, err := pathOf(target)
	if err != nil {
		return localhost
	}
	data, err := read(path)
	if err != nil {
		return localhost
	}
	l, err := parse(data)
	if err != nil || l.authority == "" {
		return localhost
	}
	return l.authority
}
