package file

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/resolver"
)

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
	r := newFollower(path, cc, opts)
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

// pathOf returns the absolute path of the file that the target names.
func pathOf(target resolver.Target) (string, error) {
	u := target.URL
	refuse := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("%s: target %q: %s: want nodes:///path/to/nodes.yaml or nodes:relative/nodes.yaml", Scheme, u.String(), fmt.Sprintf(format, args...))
	}
	switch {
	case u.User != nil || u.Host != "":
		return refuse("there is an authority, %q", strings.TrimPrefix((&url.URL{User: u.User, Host: u.Host}).String(), "//"))
	case u.RawQuery != "" || u.ForceQuery:
		return refuse("there is a query, %q", u.RawQuery)
	case u.Fragment != "":
		return refuse("there is a fragment, %q", u.Fragment)
	}
	path := u.Path
	if path == "" {
		var err error
		if path, err = url.PathUnescape(u.Opaque); err != nil {
			return refuse("%v", err)
		}
	}
	if path == "" || strings.HasSuffix(path, "/") || strings.ContainsRune(path, 0) {
		return refuse("it names no file")
	}
	abs, err := filepath.Abs(filepath.FromSlash(path))
	if err != nil {
		return refuse("%v", err)
	}
	return abs, nil
}
