package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// asker asks DNS one question. A *net.Resolver is one.
type asker interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, records []*net.SRV, err error)
}

// newAsker returns what asks the server, host:port, or the system's resolver
// without one.
//
// StrictErrors keeps a failure from looking like an answer: without it, that of
// one name of the search list is forgotten for the "no such host" of the next.
func newAsker(server string) asker {
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

// source is an asker whose errors say who was asked for what: each is a failure.
type source struct {
	asker
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
		return nil, s.explain(ctx, recordsOf[network], host, err)
	}
	for i, a := range addrs {
		addrs[i] = a.Unmap()
	}
	return addrs, nil
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
		err = s.explain(ctx, "SRV", name, err)
	}
	return records, err
}

// failure is why a question has no answer. Its text names the records, the name,
// the server and the cause.
type failure struct {
	text    string
	missing bool // the answer is that there are no such records
	cause   error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

// missing reports whether the error says that there are no such records.
func missing(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.missing
}

// explain makes a failure of what the asker returned. The context is the one of
// the question.
func (s source) explain(ctx context.Context, records, name string, err error) error {
	f := &failure{cause: err}
	server, cause := s.server, err.Error()
	late := errors.Is(ctx.Err(), context.DeadlineExceeded)
	var answered *net.DNSError
	var otherFamily *net.AddrError
	if errors.As(err, &answered) {
		f.missing, cause = answered.IsNotFound, answered.Err
		late = late || answered.IsTimeout
		if server == "" {
			server = answered.Server
		}
	} else if errors.As(err, &otherFamily) {
		// The hosts file has the name, but not in this family.
		f.missing = true
	}
	if late {
		f.missing, cause = false, "no answer in time"
	}
	if server == "" {
		server = "the system's resolver"
	}
	f.text = fmt.Sprintf("%s: %s records of %s from %s: %s", s.scheme, records, name, server, cause)
	return f
}

// maxJoined is how many errors a text names.
const maxJoined = 3

// join returns one error, in one line, for all of them; nil for none.
func join(errs []error) error {
	switch n := len(errs); {
	case n == 0:
		return nil
	case n == 1:
		return errs[0]
	case n > maxJoined:
		return fmt.Errorf("%w; and %d more", join(errs[:maxJoined]), n-maxJoined)
	}
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}
