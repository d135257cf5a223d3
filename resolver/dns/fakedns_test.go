package dns

import (
	"context"
	"net"
	"net/netip"
	"sync"
)

// zone is an asker with the records that it holds.
type fakeDNS struct {
	mu    sync.Mutex
	addrs map[string][]string // by "A name" and "AAAA name"; a name is without a dot at its end
	srv   []*net.SRV
	fails map[string]error // by "A name", "AAAA name" and "SRV"
	asked map[string]int
}

var (
	servFail = &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	nxDomain = &net.DNSError{Err: "no such host", IsNotFound: true}
)

func (z *fakeDNS) ask(question string) ([]string, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.asked == nil {
		z.asked = map[string]int{}
	}
	z.asked[question]++
	if err := z.fails[question]; err != nil {
		return nil, err
	}
	return z.addrs[question], nil
}

func (z *fakeDNS) LookupNetIP(_ context.Context, network, host string) (found []netip.Addr, err error) {
	addrs, err := z.ask(recordsOf[network] + " " + host)
	for _, a := range addrs {
		found = append(found, netip.MustParseAddr(a))
	}
	return found, err
}

func (z *fakeDNS) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	if service != "" || proto != "" {
		panic("asked for a composed name")
	}
	_, err := z.ask("SRV")
	z.mu.Lock()
	defer z.mu.Unlock()
	if err == servMalformed {
		return name, z.srv, err
	}
	if err != nil {
		return "", nil, err
	}
	return name, z.srv, nil
}

// servMalformed comes with the records that are well-formed.
var servMalformed = &net.DNSError{Err: "DNS response contained records which contain invalid names"}
