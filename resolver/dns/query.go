package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// netResolver asks DNS one question. A *net.Resolver is one.
type netResolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, records []*net.SRV, err error)
}

// newNetResolver returns what asks the server, host:port, or the system's resolver
// without one.
//
// StrictErrors keeps a failure from looking like an answer: without it, that of
// one name of the search list is forgotten for the "no such host" of the next.
func newNetResolver(server string) netResolver {
	return &net.Resolver{
		PreferGo:     server != "",
		StrictErrors: true,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if server != "" {
				address = server
			}
			var d net.Dialer
			conn, err := d.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			// The caller reads until its deadline, cancelled or not.
			context.AfterFunc(ctx, func() {
				if errors.Is(ctx.Err(), context.Canceled) {
					conn.Close()
				}
			})
			return conn, nil
		},
	}
}

// source is a resolver whose errors say who was asked for what: each is a
// failure.
type source struct {
	netResolver
	scheme string
	server string // host:port; "" is the system's resolver
}

// recordsOf names the records by the network that LookupNetIP takes.
var recordsOf = map[string]string{"ip4": "A", "ip6": "AAAA"}

// addrs returns the addresses that a host has in a network, "ip4" or "ip6".
func (s source) addrs(ctx context.Context, network, host string) ([]netip.Addr, error) {
	addrs, err := s.LookupNetIP(ctx, network, host)
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Err: "there are none", IsNotFound: true}
	}
	if err != nil {
		return nil, s.failureOf(ctx, recordsOf[network], host, err)
	}
	unmapped := make([]netip.Addr, len(addrs))
	for i, a := range addrs {
		unmapped[i] = a.Unmap()
	}
	return unmapped, nil
}

// records returns the SRV records of a name. Those that are malformed, if there
// are others, cost only an error.
func (s source) records(ctx context.Context, name string) (records []*net.SRV, err error) {
	_, found, err := s.LookupSRV(ctx, "", "", name)
	for _, r := range found {
		// The root says that there is decidedly no such service.
		if r.Target != "." {
			records = append(records, r)
		}
	}
	if err == nil && len(records) == 0 {
		err = &net.DNSError{Err: "there are none", IsNotFound: true}
	}
	if err != nil {
		err = s.failureOf(ctx, "SRV", name, err)
	}
	return records, err
}

// failure is why a question has no answer. Its text names the records, the name,
// the server and the cause.
type failure struct {
	text     string
	notFound bool // the answer is that there are no such records
	cause    error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

// isNotFound reports whether the error says that there are no such records.
func isNotFound(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.notFound
}

// failureOf makes a failure of what the resolver returned. The context is the one of
// the question.
func (s source) failureOf(ctx context.Context, records, name string, err error) error {
	f := &failure{cause: err}
	server, cause := s.server, err.Error()
	late := errors.Is(ctx.Err(), context.DeadlineExceeded)
	var answered *net.DNSError
	var otherFamily *net.AddrError
	if errors.As(err, &answered) {
		f.notFound, cause = answered.IsNotFound, answered.Err
		late = late || answered.IsTimeout
		if server == "" {
			server = answered.Server
		}
	} else if errors.As(err, &otherFamily) {
		// The hosts file has the name, but not in this family.
		f.notFound = true
	}
	if late {
		f.notFound, cause = false, "no answer in time"
	}
	if server == "" {
		server = "the system's resolver"
	}
	f.text = fmt.Sprintf("%s: %s records of %s from %s: %s", s.scheme, records, name, server, cause)
	return f
}

// maxJoined is how many errors a text names.
const maxJoined = 3

// joinErrors returns one error, in one line, for all of them; nil for none.
func joinErrors(errs []error) error {
	switch n := len(errs); {
	case n == 0:
		return nil
	case n == 1:
		return errs[0]
	case n > maxJoined:
		return fmt.Errorf("%w; and %d more", joinErrors(errs[:maxJoined]), n-maxJoined)
	}
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}
