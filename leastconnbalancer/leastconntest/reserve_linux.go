package leastconntest

import (
	"net/netip"
	"syscall"
)

// reservePort binds addr without listening: connections to it are refused, the next listener that names the address may
// have it, but the system no longer picks the port for a socket that asks for any. Without that, the port of a stopped
// node can go to any process. It is best effort: what cannot be reserved is not.
func reservePort(addr string) (release func()) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().Is4() {
		return func() {}
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return func() {}
	}
	release = func() { syscall.Close(fd) }
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err == nil {
		_ = syscall.Bind(fd, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()})
	}
	return release
}
