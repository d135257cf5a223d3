// Package dns registers two name resolvers that look a name up again and
// again, so that a scale-out is seen while nothing breaks. gRPC's own "dns"
// resolver looks again only when a connection breaks. Import it for that:
//
//	import _ "github.com/leastconn/grpc-leastconn/resolver/dns"
//
// The schemes are
//
//	dns-poll://[server]/host[:port][?parameters]
//	srv://[server]/_service._proto.name[?parameters]
//
// dns-poll looks up A and AAAA records; each address is an endpoint, as are the
// pods of a headless service. The port is 443 by default, an empty host is
// localhost. An IP address in place of the host, an IPv6 one in brackets, is
// used as it is, with its zone id if it has one (written "%25eth0" in a URL).
//
// srv looks up SRV records (RFC 2782), then the addresses of their targets. A
// target with exactly one A and one AAAA record is one endpoint with two
// addresses, the IPv6 one first; in every other case each address is an
// endpoint. The record's priority is the endpoint's, 0 being the highest level.
// Its weight is the endpoint's, too, but that 0 becomes 1: the lowest share, and
// equal shares if all are 0. The lone target "." is no address at all.
//
// The server is host, host:port or [IPv6]:port, with port 53 by default. It is
// asked by Go's own DNS client over UDP, and over TCP if the answer is
// truncated. Without one the system's resolver is used. Either way the system's
// hosts file and search list apply, as they do for gRPC's dns; a name that ends
// with a dot is not searched for.
//
// # Parameters
//
//   - interval: the longest time from the end of one lookup to the next, which
//     starts after 80 to 100 % of it, at random. 100ms to 1h, 10s by default.
//   - minInterval: the shortest time from the end of one lookup to the next that
//     gRPC asks for because a connection broke. 100ms to 1h, 2s by default;
//     more than the interval is the interval.
//   - timeout: the longest that one lookup may take, with all its questions.
//     100ms to 1m, 10s by default.
//   - family: 4 or 6, to look up only A or only AAAA. Both by default.
//   - emptyAfter: how many lookups in a row must say that a name does not exist
//     or has no such records before that is believed. 1 to 1000, 3 by default.
//
// Durations are written as for time.ParseDuration. A parameter that is unknown,
// repeated or out of bounds is refused: RPCs fail with a text that names it, its
// value and what is allowed. The canonical target of a channel, which by default
// is its resource key, has no parameters: channels that differ in them only
// share their load.
//
// # Failures
//
// A lookup that fails (no answer, refused, server failure) changes nothing: the
// last good answer stays in use, for each name and family by itself. The error
// is reported to the channel, which fails RPCs with it as long as they have no
// connection. It names the server, the name and the cause. The next lookup comes
// at the interval; before there was any address, after 1 s, then twice as long
// each time, up to the interval.
//
// One domain of the search list may fail while another has the name. So after a
// failure, or without an answer in half of the timeout, the question is asked
// again and domains that fail are passed over. Records that are found then are
// believed; that there are none is not.
//
// A policy that refuses a list gets it again with the next lookup. A list that
// it took is sent again only when it differs, whatever the order of records.
//
// # Authority
//
// Certificates are checked against the name that was dialled, never against one
// that DNS answered. The channel's authority is the plain host name as written,
// without port, zone id and a dot at its end, and for srv without its
// _service._proto labels, too. grpc.WithAuthority sets another one.
//
// # Proxies
//
// If the environment names an HTTPS proxy for an address, gRPC takes priority
// and weight away before the policy sees them, and puts the proxy's address
// instead of the endpoint's. Use grpc.WithNoProxy or NO_PROXY.
//
// # Lifetime
//
// A resolver lives as long as its channel is not idle. It runs one goroutine
// between lookups, which never overlap; Close cancels what is under way, waits
// for it and sends nothing after it. No function here is for callers: gRPC calls
// the resolvers, and they are safe for that.
package dns
