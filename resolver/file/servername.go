package file

import (
	"net"
	"strings"
)

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
