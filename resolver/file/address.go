package file

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

const (
	wantAddress = "want host:port or [IPv6]:port with a port from 1 to 65535, unix:/path or unix-abstract:name"
	unixScheme  = "unix:"
)

// addressOf returns the one form of an address that gRPC can dial and by which
// repeats are found, and false if it is none.
func addressOf(s string) (string, bool) {
	if name, ok := strings.CutPrefix(s, "unix-abstract:"); ok {
		return abstractSocket(name)
	}
	if path, ok := strings.CutPrefix(s, unixScheme); ok {
		return socket(path)
	}
	return hostPort(s)
}

// abstractSocket returns the address of an abstract socket: to Go, a leading "@"
// makes a name abstract.
func abstractSocket(name string) (string, bool) {
	if name == "" {
		return "", false
	}
	return socket("@" + name)
}

// socket returns the address of a unix socket. gRPC's dialer recognises it by
// its scheme, as the mark of gRPC's own resolver is out of reach; from ":/" on it
// reads a URL, so a path with slashes after a colon has to be one.
func socket(path string) (string, bool) {
	if strings.HasPrefix(path, "//") {
		path = path[2:]
		if !strings.HasPrefix(path, "/") {
			return "", false
		}
	}
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	switch {
	case path == "" || path == "@" || strings.ContainsFunc(path, control):
		return "", false
	case strings.HasPrefix(path, "/"):
		return unixScheme + "//" + (&url.URL{Path: path}).EscapedPath(), true
	}
	return unixScheme + path, !strings.Contains(path, ":/")
}

// hostPort returns the address of a TCP port.
func hostPort(s string) (string, bool) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return "", false
	}
	host, ok := hostOf(host, strings.HasPrefix(s, "["))
	return net.JoinHostPort(host, strconv.FormatUint(number, 10)), ok
}

// hostOf returns the one form of a host: an IPv6 address where brackets were
// around it, else an IPv4 address or a host name.
func hostOf(s string, bracketed bool) (string, bool) {
	if ip, err := netip.ParseAddr(s); err == nil {
		odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("%[]/", r) }
		return ip.String(), ip.Is6() == bracketed && !strings.ContainsFunc(ip.Zone(), odd)
	}
	return strings.ToLower(s), !bracketed && isHostName(s)
}

// isHostName reports whether s can be looked up. What ends in a number can only
// be a mistaken IPv4 address.
func isHostName(s string) bool {
	s = strings.TrimSuffix(s, ".")
	if len(s) > 253 {
		return false
	}
	odd := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	}
	labels := strings.Split(s, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, odd) {
			return false
		}
	}
	return strings.Trim(labels[len(labels)-1], "0123456789") != ""
}

const wantName = "want a host name, an IPv4 address or [IPv6], with or without a port"

// isName reports whether s can be an :authority and name a certificate.
func isName(s string) bool {
	if strings.Contains(s, "%") {
		return false
	}
	if _, ok := hostPort(s); ok {
		return true
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		_, ip := hostOf(inner, true)
		return ok && ip
	}
	_, ok := hostOf(s, false)
	return ok
}

// nameOf returns the name of an address that nothing else names: that by which
// it is dialled.
func nameOf(addr string) string {
	if strings.HasPrefix(addr, unixScheme) {
		return localhost
	}
	// It is an address that hostPort made.
	host, port, _ := net.SplitHostPort(addr)
	host, _, _ = strings.Cut(host, "%")
	return net.JoinHostPort(host, port)
}
