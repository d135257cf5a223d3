package testserver_test

import (
	"crypto/x509"
	"net"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/interop/internal/testserver"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

// The certificate is the authority's, for the names that it is said to be for and for no other.
func TestCertificate(t *testing.T) {
	c, err := testserver.NewCertificate("node.example", "192.0.2.1")
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(c.TLS.Certificate[0])
	require.NoError(t, err)
	verify := func(authority []byte, name string) error {
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM(authority))
		_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name})
		return err
	}
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "foo.test.google.fr", "node.example", "192.0.2.1"} {
		require.NoError(t, verify(c.CA, name), name)
	}
	require.ErrorContains(t, verify(c.CA, "other.example"), "other.example")
	other, err := testserver.NewCertificate()
	require.NoError(t, err)
	require.Error(t, verify(other.CA, "localhost"), "another authority")
}

// quiet is an address of loopback that no client connects from, so that the system gives none of its ports to others
// between two listeners. Other systems than Linux have only one.
func quiet() string {
	if runtime.GOOS == "linux" {
		return "127.0.0.77"
	}
	return "127.0.0.1"
}

// neighbours listens on two ports in a row.
func neighbours(t *testing.T) (first, second net.Listener) {
	for range 100 {
		second, err := net.Listen("tcp", net.JoinHostPort(quiet(), "0"))
		require.NoError(t, err)
		first, err := net.Listen("tcp", net.JoinHostPort(quiet(), strconv.Itoa(port(second)-1)))
		if err == nil {
			t.Cleanup(func() { first.Close(); second.Close() })
			return first, second
		}
		second.Close()
	}
	t.Fatal("no two ports in a row are free")
	return nil, nil
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

// Servers have ports in a row. When one cannot listen, none does.
func TestPorts(t *testing.T) {
	first, second := neighbours(t)
	both := testserver.Options{Host: quiet(), Port: port(first), Count: 2}
	one := both
	one.Count = 1
	first.Close()
	_, err := testserver.Start(both)
	require.ErrorContains(t, err, second.Addr().String()+": bind: address already in use")
	g, err := testserver.Start(one)
	require.NoError(t, err, "the first port was given back")
	g.Close(0)
	second.Close()
	g, err = testserver.Start(both)
	require.NoError(t, err)
	defer g.Close(0)
	require.Equal(t, []string{first.Addr().String(), second.Addr().String()}, g.Addrs())
}
