package dns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/grpc/resolver"
)

const (
	defaultPort       = "443"
	defaultServerPort = "53"
)

// target is what a dial target says.
type target struct {
	params
	scheme  string
	server  string         // host:port; "" is the system's resolver
	name    string         // what is looked up; "" with a literal
	port    uint16         // of the addresses of the name; SRV records have their own
	literal netip.AddrPort // the address of a target that needs no lookup
}

// parse reads a target of either scheme.
func parse(scheme string, t resolver.Target) (target, error) {
	parsed, err := parseURL(scheme, t.URL, t.Endpoint())
	if err != nil {
		return target{}, fmt.Errorf("%s: target %q: %w", scheme, t.URL.Redacted(), err)
	}
	return parsed, nil
}

func parseURL(scheme string, u url.URL, endpoint string) (t target, err error) {
	t.scheme = scheme
	switch {
	case u.User != nil:
		return t, errors.New("has a user, want none")
	case u.Fragment != "":
		return t, fmt.Errorf("has a fragment %q, want none", u.Fragment)
	case endpoint == "":
		return t, errors.New("has no name to look up")
	}
	if t.params, err = parseParams(u.RawQuery); err != nil {
		return t, err
	}
	if t.server, err = parseServer(u.Host); err != nil {
		return t, err
	}
	if scheme == SRVScheme {
		t.name, err = parseSRV(endpoint)
		return t, err
	}
	return t, t.parseHost(endpoint)
}

// parseServer returns the DNS server as host:port, "" for none.
func parseServer(written string) (string, error) {
	if written == "" {
		return "", nil
	}
	host, port, err := splitHostPort(written, defaultServerPort)
	if err == nil {
		if ip, isIP := netip.ParseAddr(host); isIP == nil {
			host = ip.String()
		} else if !isName(host) {
			err = fmt.Errorf("%q is neither a host name nor an IP address", host)
		}
	}
	if err != nil {
		return "", fmt.Errorf("server %q: %w", written, err)
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port))), nil
}

// parseSRV returns the name of SRV records.
func parseSRV(name string) (string, error) {
	if plainName(name) == "" || !isName(name) {
		return "", fmt.Errorf("name %q: want _service._proto.name, such as _grpc._tcp.example.com; the records say the ports", name)
	}
	return name, nil
}

// plainName returns an SRV name without its _service._proto labels and without
// a dot at its end, "" if it is none.
func plainName(srv string) string {
	labels := strings.SplitN(strings.TrimSuffix(srv, "."), ".", 3)
	if len(labels) < 3 || len(labels[0]) < 2 || labels[0][0] != '_' || len(labels[1]) < 2 || labels[1][0] != '_' {
		return ""
	}
	return labels[2]
}

// parseHost reads host[:port] into the target.
func (t *target) parseHost(endpoint string) error {
	host, port, err := splitHostPort(endpoint, defaultPort)
	if err != nil {
		return fmt.Errorf("address %q: %w", endpoint, err)
	}
	t.port = port
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil:
		ip = ip.Unmap()
		t.literal = netip.AddrPortFrom(ip, port)
		if t.family == 4 && !ip.Is4() || t.family == 6 && ip.Is4() {
			return fmt.Errorf("parameter family: value \"%d\": %s is not of that family", t.family, ip)
		}
	case host == "":
		t.name = "localhost"
	case isName(host):
		t.name = host
	default:
		return fmt.Errorf("%q is neither a host name nor an IP address", host)
	}
	return nil
}

// splitHostPort takes a host with or without a port; the port is one that can be
// connected to.
func splitHostPort(written, defaultPort string) (host string, port uint16, err error) {
	if ip, err := netip.ParseAddr(written); err == nil && ip.Is6() {
		return "", 0, fmt.Errorf("want brackets around an IPv6 address, such as %s", net.JoinHostPort(written, defaultPort))
	}
	host, digits, err := net.SplitHostPort(written)
	if err != nil {
		if host, digits, err = net.SplitHostPort(written + ":" + defaultPort); err != nil {
			return "", 0, errors.New("want host, host:port, [IPv6] or [IPv6]:port")
		}
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("port %q: want a number from 1 to 65535", digits)
	}
	if written[0] == '[' && !strings.Contains(host, ":") {
		return "", 0, fmt.Errorf("%q is in brackets, want that for an IPv6 address only", host)
	}
	return host, uint16(n), nil
}

// isName reports whether DNS can be asked for the name: labels of 1 to 63
// letters, digits, hyphens and underscores, 253 bytes without a dot at the end,
// and not only digits and dots, as a mistyped IPv4 address is.
func isName(name string) bool {
	name = strings.TrimSuffix(name, ".")
	if len(name) > 253 || strings.Trim(name, "0123456789.") == "" {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if len(label) == 0 || len(label) > 63 || strings.Trim(label, alphanumeric+"-_") != "" {
			return false
		}
	}
	return true
}

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
