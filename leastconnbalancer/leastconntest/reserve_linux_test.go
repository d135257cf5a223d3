package leastconntest

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
