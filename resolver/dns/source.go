package dns

import (
	"context"
	"errors"
	"net"
	"net/netip"
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
