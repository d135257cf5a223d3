package leastconntest

import (
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReservedPortIsKept(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().(*net.TCPAddr)
	require.NoError(t, listener.Close())

	release := reservePort(addr.String())
	assert.ErrorIs(t, bind(t, addr.Port), syscall.EADDRINUSE)
	_, err = net.Dial("tcp", addr.String())
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)

	listener, err = net.Listen("tcp", addr.String())
	require.NoError(t, err, "the owner of the address gets it in spite of the reservation")
	require.NoError(t, listener.Close())
	release()
	assert.NoError(t, bind(t, addr.Port))
}

func TestStoppedNodeKeepsItsPort(t *testing.T) {
	n, err := StartNode(Options{})
	require.NoError(t, err)
	defer n.Close()
	port := int(netip.MustParseAddrPort(n.Addr()).Port())
	n.Stop()
	assert.ErrorIs(t, bind(t, port), syscall.EADDRINUSE)
	require.NoError(t, n.Restart())
	n.Stop()
	n.Close()
	assert.NoError(t, bind(t, port), "a closed node gives its port back")
}

// bind tries to get the port as a socket does that was not meant to share it.
func bind(t *testing.T, port int) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer syscall.Close(fd)
	return syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}
