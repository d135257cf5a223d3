package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

var logger = grpclog.Component("nodes-resolver")

// maxSize is the size of the largest file, in bytes.
const maxSize = 4 << 20

var errNotRegular = errors.New("want a regular file")

// read returns the contents of the file. Another than a regular one is not
// opened: that may wake whoever waits for it.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(data) > maxSize {
		err = fmt.Errorf("want at most %d bytes", maxSize)
	}
	return data, err
}

// open opens a regular file. Another may have taken its name since the last look,
// and must not block.
func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// source makes states of a file's lists for one channel.
type source struct {
	path            string
	noServiceConfig bool
	named           bool // the channel's credentials name the server
}

func sourceOf(path string, opts resolver.BuildOptions) source {
	s := source{path: path, noServiceConfig: opts.DisableServiceConfig}
	if opts.DialCreds != nil {
		//lint:ignore SA1019 deprecated or not, gRPC heeds it, and so must the names that come after it.
		s.named = opts.DialCreds.Info().ServerName != ""
	}
	return s
}

// locate returns err with the file and, where there is one, the line.
func (s source) locate(err error) error {
	var op *fs.PathError
	switch line := lineOf(err); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %s: there is no such file; it will be read when it appears", Scheme, s.path)
	case errors.As(err, &op):
		return fmt.Errorf("%s: %s: %w", Scheme, s.path, op.Err)
	case line > 0:
		return fmt.Errorf("%s: %s:%d: %w", Scheme, s.path, line, err)
	}
	return fmt.Errorf("%s: %s: %w", Scheme, s.path, err)
}

// state returns what the channel is told of a list. gRPC parses the service
// config.
func (s source) state(l *list, parse func(string) *serviceconfig.ParseResult) resolver.State {
	state := resolver.State{Endpoints: make([]resolver.Endpoint, len(l.nodes))}
	for i, n := range l.nodes {
		state.Endpoints[i] = s.endpoint(l, n)
	}
	if l.serviceConfig != "" && !s.noServiceConfig {
		state.ServiceConfig = parse(l.serviceConfig)
		if err := state.ServiceConfig.Err; err != nil {
			err = s.locate(&lineError{line: l.configLine, text: "serviceConfig: " + err.Error()})
			state.ServiceConfig = &serviceconfig.ParseResult{Err: err}
		}
	}
	key := l.resourceKey
	if key == "" {
		// Not left to the channel, for which nodes:a.yaml and nodes:///a.yaml
		// are one canonical target.
		key = Scheme + "://" + filepath.ToSlash(s.path)
	}
	return lcresolver.SetResourceKey(state, key)
}

func (s source) endpoint(l *list, n node) resolver.Endpoint {
	ep := resolver.Endpoint{Addresses: make([]resolver.Address, len(n.addresses))}
	for i, addr := range n.addresses {
		ep.Addresses[i] = resolver.Address{Addr: addr, ServerName: s.serverName(l, n, addr)}
	}
	ep = lcresolver.SetPriority(lcresolver.SetWeight(ep, n.weight), n.priority)
	if n.maxInFlight != nil {
		ep = lcresolver.SetMaxInFlight(ep, *n.maxInFlight)
	}
	if n.id != "" {
		ep = lcresolver.SetID(ep, n.id)
	}
	return ep
}

// serverName returns the name of an address, "" for the channel's authority.
// grpc.WithAuthority comes before all of them in any case.
func (s source) serverName(l *list, n node, addr string) string {
	switch {
	case n.serverName != "":
		return n.serverName
	case s.named:
		return ""
	case l.authority != "":
		return l.authority
	}
	return nameOf(addr)
}
