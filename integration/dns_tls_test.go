package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// certificate makes a certificate for a host name or an IP address, and the pool
// that trusts it.
func certificate(t *testing.T, host string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// secureNode starts a node with a certificate for a host, which notes the
// authority of each stream.
func secureNode(t *testing.T, ip, certified string) (n *leastconntest.Node, port string, authorities chan string, trust grpc.DialOption) {
	t.Helper()
	cert, pool := certificate(t, certified)
	authorities = make(chan string, 100)
	ns, port := startNodesOn(t, leastconntest.Options{ServerOptions: []grpc.ServerOption{
		grpc.Creds(credentials.NewServerTLSFromCert(&cert)),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			md, _ := metadata.FromIncomingContext(ss.Context())
			authorities <- md.Get(":authority")[0]
			return handler(srv, ss)
		}),
	}}, ip)
	return ns[0], port, authorities, grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(pool, ""))
}

// TestDNSAuthority: certificates for the plain name verify, which is the
// authority of dns-poll and srv.
func TestDNSAuthority(t *testing.T) {
	n, port, authorities, trust := secureNode(t, "127.0.0.1", "api.test")
	s := startDNS(t, "127.0.0.1")
	s.set("A", "api.test.", "127.0.0.1")
	s.set("A", "pod-a.test.", "127.0.0.1")
	s.set("SRV", "_grpc._tcp.api.test.", "0 0 "+port+" pod-a.test.")
	for target, want := range map[string]string{
		"dns://%s/api.test:%s":                         "api.test:" + port,
		"dns-poll://%s/api.test:%s?interval=1s":        "api.test",
		"dns-poll://%s/api.test.:%s":                   "api.test",
		"srv://%s/_grpc._tcp.api.test?interval=1s%.0s": "api.test",
		"srv://%s/_grpc._tcp.api.test.%.0s":            "api.test",
	} {
		e := dialTarget(t, fmt.Sprintf(target, s.addr, port), all(n), trust)
		e.hold(1, map[string]int{"a": 1})
		require.Equal(t, want, <-authorities, target)
	}
}

// TestDNSAuthorityOfAddresses: addresses verify as addresses.
func TestDNSAuthorityOfAddresses(t *testing.T) {
	for written, ip := range map[string]string{"127.0.0.1": "127.0.0.1", "[::1]": "::1", "[::1%25lo]": "::1"} {
		n, port, authorities, trust := secureNode(t, ip, ip)
		e := dialTarget(t, fmt.Sprintf("dns-poll:///%s:%s", written, port), all(n), trust)
		e.hold(1, map[string]int{"a": 1})
		require.Equal(t, strings.ReplaceAll(written, "%25lo", ""), <-authorities)
	}
}

// TestDNSIsNotTrusted: what an SRV record names as its target is no name that a
// certificate may have.
func TestDNSIsNotTrusted(t *testing.T) {
	n, port, _, trust := secureNode(t, "127.0.0.1", "pod-a.test")
	s := startDNS(t, "127.0.0.1")
	s.set("A", "pod-a.test.", "127.0.0.1")
	s.set("SRV", "_grpc._tcp.api.test.", "0 0 "+port+" pod-a.test.")
	e := dialTarget(t, fmt.Sprintf("srv://%s/_grpc._tcp.api.test", s.addr), all(n), trust)
	require.Contains(t, e.waitFailure(), "certificate is valid for pod-a.test, not api.test")
}
