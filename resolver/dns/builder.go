package dns

import (
	"cmp"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc/resolver"
)

const (
	// PollScheme is the scheme of targets that are looked up by A and AAAA records.
	PollScheme = "dns-poll"
	// SRVScheme is the scheme of targets that are looked up by SRV records.
	SRVScheme = "srv"
)

func init() {
	resolver.Register(builder(PollScheme))
	resolver.Register(builder(SRVScheme))
}

// builder builds the resolvers of the scheme that it is.
type builder string

var _ resolver.AuthorityOverrider = builder("")

// Scheme returns the scheme.
func (b builder) Scheme() string { return string(b) }

// Build starts a resolver. An IP address is handed to the channel at once; what
// the policy says to it is left to its picker, since asking again would change
// nothing.
func (b builder) Build(t resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	parsed, err := parse(string(b), t)
	if err != nil {
		return nil, err
	}
	if parsed.literal.IsValid() {
		cc.UpdateState(stateOf([]endpoint{{addr: parsed.literal}}))
		return staticResolver{}, nil
	}
	return startPoller(parsed.params, cc, parsed.lookup(newSource(parsed.scheme, parsed.server, parsed.timeout))), nil
}

// OverrideAuthority returns what certificates are checked against. For a target
// that Build refuses it is some valid authority.
func (b builder) OverrideAuthority(t resolver.Target) string {
	endpoint := t.Endpoint()
	if b == SRVScheme {
		if name := plainName(endpoint); name != "" {
			endpoint = name
		}
	} else {
		endpoint = plainHost(endpoint)
	}
	return encodeAuthority(endpoint)
}

// plainHost returns the host of host[:port], an IPv6 address in its brackets and
// without its zone, which no certificate has, and a name without a dot at its end.
func plainHost(endpoint string) string {
	if host, _, err := net.SplitHostPort(endpoint); err == nil {
		if endpoint = host; strings.Contains(host, ":") {
			endpoint = "[" + host + "]"
		}
	}
	if address, _, zoned := strings.Cut(endpoint, "%"); zoned && strings.HasPrefix(address, "[") {
		endpoint = address + "]"
	}
	return cmp.Or(strings.TrimSuffix(endpoint, "."), "localhost")
}

// inAuthority are the characters that stand for themselves in an authority, RFC
// 3986 section 3.2.
const inAuthority = alphanumeric + "-._~" + "!$&'()*+,;=" + ":[]@"

// encodeAuthority escapes all but the characters that an authority may have.
func encodeAuthority(authority string) string {
	var b strings.Builder
	for _, c := range []byte(authority) {
		if strings.IndexByte(inAuthority, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// lookup returns what the poller of the target does each time.
func (t target) lookup(s source) lookup {
	hosts := &hosts{source: s, params: t.params}
	if t.scheme == SRVScheme {
		return (&srvLookup{hosts: hosts, name: t.name}).lookup
	}
	return (&hostLookup{hosts: hosts, name: t.name, port: t.port}).lookup
}

// staticResolver is the resolver of an address that needs no lookup.
type staticResolver struct{}

func (staticResolver) ResolveNow(resolver.ResolveNowOptions) {}
func (staticResolver) Close()                                {}
