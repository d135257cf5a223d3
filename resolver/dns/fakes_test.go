package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"
)

var (
	servFail = &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	nxDomain = &net.DNSError{Err: "no such host", IsNotFound: true}
	// malformed comes with the records that are well-formed.
	malformed = &net.DNSError{Err: "DNS response contained records which contain invalid names"}
)

// fakeDNS is a netResolver that answers from a zone. An entry is "A name: address …", "AAAA name: address …" or
// "SRV: target:port/priority/weight …". An answer may hold "servfail", "nxdomain", "malformed" or "silent".
type fakeDNS struct {
	mu    sync.Mutex
	zone  map[string]string
	asked map[string]int
}

// set replaces the zone. Entries are separated by semicolons.
func (z *fakeDNS) set(entries string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.zone, z.asked = map[string]string{}, map[string]int{}
	for entry := range strings.SplitSeq(entries, "; ") {
		question, answer, _ := strings.Cut(entry, ": ")
		z.zone[question] = answer
	}
}

func (z *fakeDNS) ask(ctx context.Context, question string) (records []string, err error) {
	z.mu.Lock()
	z.asked[question]++
	fields := strings.Fields(z.zone[question])
	z.mu.Unlock()
	for _, field := range fields {
		if field == "silent" {
			<-ctx.Done()
			return nil, &net.DNSError{Err: "i/o timeout", IsTimeout: true}
		}
		if e := map[string]error{"servfail": servFail, "nxdomain": nxDomain, "malformed": malformed}[field]; e != nil {
			err = e
		} else {
			records = append(records, field)
		}
	}
	return records, err
}

func (z *fakeDNS) LookupNetIP(ctx context.Context, network, host string) (addrs []netip.Addr, err error) {
	records, err := z.ask(ctx, recordsOf[network]+" "+host)
	return parseAddrs(records...), err
}

func (z *fakeDNS) LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error) {
	if service != "" || proto != "" {
		panic("asked for a composed name")
	}
	records, err := z.ask(ctx, "SRV")
	return name, parseSRVs(records...), err
}

func parseAddrs(written ...string) (addrs []netip.Addr) {
	for _, a := range written {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	return addrs
}

// parseSRVs reads records that are written as target:port, target:port/priority or target:port/priority/weight.
func parseSRVs(written ...string) (records []*net.SRV) {
	for _, w := range written {
		target, numbers, _ := strings.Cut(w, ":")
		r := &net.SRV{Target: target}
		fmt.Sscanf(numbers, "%d/%d/%d", &r.Port, &r.Priority, &r.Weight)
		records = append(records, r)
	}
	return records
}

// recordingConn is a channel that records what a resolver tells it. A resolver
// calls nothing else of what it embeds.
type recordingConn struct {
	resolver.ClientConn
	refuse func(resolver.State) error // nil refuses nothing
	hold   chan struct{}              // if there is one, UpdateState waits for it

	mu     sync.Mutex
	events []string
}

func (c *recordingConn) UpdateState(s resolver.State) error {
	if c.hold != nil {
		<-c.hold
	}
	var list []string
	for _, ep := range s.Endpoints {
		var addrs []string
		for _, a := range ep.Addresses {
			addrs = append(addrs, a.Addr)
		}
		list = append(list, strings.Join(addrs, "+"))
	}
	c.add(strings.Join(list, " "))
	if c.refuse != nil {
		return c.refuse(s)
	}
	return nil
}

func (c *recordingConn) ReportError(err error) { c.add("error: " + err.Error()) }

func (c *recordingConn) add(event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, event)
}

// takeEvents returns the events since the last call: a list as its addresses, and
// an error after "error: ".
func (c *recordingConn) takeEvents() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	events := c.events
	c.events = nil
	return events
}

// found makes an answer of addresses.
func found(addrs ...string) answer {
	a := answer{complete: true}
	for _, addr := range addrs {
		a.endpoints = append(a.endpoints, endpoint{addr: netip.MustParseAddrPort(addr)})
	}
	return a
}

func failed(text string) answer { return answer{err: errors.New(text)} }

// scriptedLookup is a lookup whose answers are given beforehand. The last one
// stays.
type scriptedLookup struct {
	answers []answer
	takes   time.Duration
	running atomic.Int32

	mu             sync.Mutex
	started, ended []time.Time
}

func (s *scriptedLookup) lookup(context.Context) answer {
	if s.running.Add(1) > 1 {
		panic("lookups overlap")
	}
	defer s.running.Add(-1)
	s.note(&s.started)
	time.Sleep(s.takes)
	s.note(&s.ended)
	a := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	return a
}

func (s *scriptedLookup) note(times *[]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*times = append(*times, time.Now())
}

// count returns how many lookups there were, once nothing more happens now.
func (s *scriptedLookup) count() int {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.started)
}

// pauses returns the times between lookups.
func (s *scriptedLookup) pauses() (ds []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, started := range s.started[1:] {
		ds = append(ds, started.Sub(s.ended[i]))
	}
	return ds
}
