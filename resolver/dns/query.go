package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// netResolver asks DNS one question. A *net.Resolver is one.
type netResolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, records []*net.SRV, err error)
}

// newNetResolver returns what asks the server, host:port, or the system's resolver
// without one. It waits for an answer to one packet for so long at most, or as
// long as the system says if that is 0.
//
// A strict one keeps a failure from looking like an answer: another forgets the
// failure of one name of the search list for the "no such host" of the next.
func newNetResolver(server string, strict bool, longest time.Duration) netResolver {
	return &net.Resolver{
		PreferGo:     server != "",
		StrictErrors: strict,
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
			if longest > 0 {
				time.AfterFunc(longest, func() { conn.Close() })
			}
			return conn, nil
		},
	}
}

// source asks DNS. Its errors say who was asked for what: each is a failure.
type source struct {
	strict  netResolver
	lenient netResolver
	scheme  string
	server  string // host:port; "" is the system's resolver
}

// newSource returns the source of a server.
func newSource(scheme, server string, timeout time.Duration) source {
	// What is lenient has half of the time and must get past a domain of the
	// search list that is silent, which is asked twice by default.
	longest := timeout / 8
	return source{newNetResolver(server, true, 0), newNetResolver(server, false, longest), scheme, server}
}

// ask asks the strict resolver. After a temporary failure, or half of the time
// without an answer, it asks the lenient one as well, of which it believes no
// more than the records that it finds.
func ask[T any](ctx context.Context, s source, question func(context.Context, netResolver) ([]T, error)) ([]T, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type reply struct {
		records []T
		err     error
	}
	put := func(r netResolver) chan reply {
		replies := make(chan reply, 1)
		go func() {
			records, err := question(ctx, r)
			replies <- reply{records, err}
		}()
		return replies
	}
	var late <-chan time.Time
	if end, ok := ctx.Deadline(); ok {
		timer := time.NewTimer(time.Until(end) / 2)
		defer timer.Stop()
		late = timer.C
	}
	strict := put(s.strict)
	var lenient chan reply
	var failed error // what the strict one says
	for {
		select {
		case r := <-strict:
			if !isTemporary(r.err) || ctx.Err() != nil {
				return r.records, r.err
			}
			failed = r.err
		case r := <-lenient:
			if len(r.records) > 0 {
				return r.records, r.err
			}
			if failed == nil {
				r = <-strict
				return r.records, r.err
			}
			return nil, failed
		case <-late:
		}
		if lenient == nil {
			lenient = put(s.lenient)
		}
	}
}

// isTemporary reports whether the same question may get an answer.
func isTemporary(err error) bool {
	var e *net.DNSError
	return errors.As(err, &e) && e.Temporary()
}

// recordsOf names the records by the network that LookupNetIP takes.
var recordsOf = map[string]string{"ip4": "A", "ip6": "AAAA"}

// addrs returns the addresses that a host has in a network, "ip4" or "ip6".
func (s source) addrs(ctx context.Context, network, host string) ([]netip.Addr, error) {
	addrs, err := ask(ctx, s, func(ctx context.Context, r netResolver) ([]netip.Addr, error) {
		return r.LookupNetIP(ctx, network, host)
	})
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

// Go leaves out records whose targets it takes for no names, and says no more
// than this.
const invalidNames = "DNS response contained records which contain invalid names"

// records returns the SRV records of a name. Those that are left out, if there
// are others, cost only an error.
func (s source) records(ctx context.Context, name string) (records []*net.SRV, err error) {
	found, err := ask(ctx, s, func(ctx context.Context, r netResolver) ([]*net.SRV, error) {
		_, found, err := r.LookupSRV(ctx, "", "", name)
		return found, err
	})
	for _, r := range found {
		// The root says that there is decidedly no such service.
		if r.Target != "." {
			records = append(records, r)
		}
	}
	if err == nil && len(records) == 0 {
		err = &net.DNSError{Err: "there are none", IsNotFound: true}
	}
	var e *net.DNSError
	if errors.As(err, &e) && e.Err == invalidNames {
		err = &net.DNSError{
			Err:    "records are left out whose targets are no host names (digits and dots, such as an IP address, are none)",
			Server: e.Server,
		}
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
		// The server has failed, whatever took so long after that.
		late = late && !answered.IsTemporary || answered.IsTimeout
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
