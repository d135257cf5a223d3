package file

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
)

// authorityTo notes the :authority of RPCs.
func authorityTo(authorities chan string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		authorities <- md.Get(":authority")[0]
		return handle(ctx, req)
	}
}

// issuer signs the certificates of a test.
type issuer struct {
	*testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{T: t}
	i.key, i.cert, _ = i.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return i
}

func (i *issuer) sign(cert *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate, tls.Certificate) {
	i.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(i, err)
	cert.SerialNumber, cert.Subject = big.NewInt(1), pkix.Name{CommonName: "test"}
	cert.NotBefore, cert.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, by := i.cert, i.key
	if parent == nil {
		parent, by = cert, key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, by)
	require.NoError(i, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(i, err)
	return key, parsed, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// server returns the credentials of a server with these names.
func (i *issuer) server(ip net.IP, names ...string) grpc.ServerOption {
	i.Helper()
	cert := &x509.Certificate{DNSNames: names}
	if ip != nil {
		cert.IPAddresses = []net.IP{ip}
	}
	_, _, pair := i.sign(cert)
	return grpc.Creds(credentials.NewServerTLSFromCert(&pair))
}

// client returns the credentials of a client that trusts the issuer.
func (i *issuer) client(serverName string) grpc.DialOption {
	roots := x509.NewCertPool()
	roots.AddCert(i.cert)
	return grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: serverName}))
}

// Who is whom is told by the file or by the channel, the most specific first.
func TestTLS(t *testing.T) {
	ca := newIssuer(t)
	for name, c := range map[string]struct {
		ip         net.IP // the certificate's, beside svc.example
		head, node string // of the file
		serverName string // of the credentials
		options    []grpc.DialOption
		authority  string // what the server is called by; "" for its address
		failure    string
	}{
		"nothing":                       {failure: "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"},
		"nothing, address in cert":      {ip: net.IPv4(127, 0, 0, 1)},
		"authority":                     {head: "authority: svc.example", authority: "svc.example"},
		"authority with port":           {head: "authority: svc.example:8443", authority: "svc.example:8443"},
		"wrong authority":               {head: "authority: other.example", failure: "certificate is valid for svc.example, not other.example"},
		"serverName":                    {node: ", serverName: svc.example", authority: "svc.example"},
		"serverName before authority":   {head: "authority: other.example", node: ", serverName: svc.example", authority: "svc.example"},
		"credentials":                   {serverName: "svc.example", authority: "svc.example"},
		"credentials before authority":  {serverName: "svc.example", head: "authority: other.example", authority: "svc.example"},
		"serverName before credentials": {serverName: "other.example", node: ", serverName: svc.example", authority: "svc.example"},
		"WithAuthority before all": {
			head: "authority: other.example", node: ", serverName: other.example",
			options: []grpc.DialOption{grpc.WithAuthority("svc.example")}, authority: "svc.example",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			listener, authorities := s.serve("tcp", "127.0.0.1:0", ca.server(c.ip, "svc.example"))
			addr := listener.Addr().String()
			s.put(fmt.Sprintf("%s\nnodes: [{address: %q%s}]\n", c.head, addr, c.node))
			err := s.dial(append(c.options, ca.client(c.serverName))...).check()
			if c.failure != "" {
				require.ErrorContains(t, err, c.failure)
				return
			}
			require.NoError(t, err)
			if c.authority == "" {
				c.authority = addr
			}
			require.Equal(t, c.authority, <-authorities)
		})
	}
}

// Nodes with certificates of their own each have their name.
func TestServerNames(t *testing.T) {
	ca, s := newIssuer(t), newEnv(t)
	one, ones := s.serve("tcp", "127.0.0.1:0", ca.server(nil, "a.example"))
	two, twos := s.serve("tcp", "127.0.0.1:0", ca.server(nil, "b.example"))
	s.put(fmt.Sprintf("authority: b.example\nnodes:\n  - {address: %q, serverName: a.example}\n  - address: %q\n", one.Addr(), two.Addr()))
	ch := s.dial(ca.client(""))
	s.wait("both have answered", func() bool { return ch.check() == nil && len(ones) > 0 && len(twos) > 0 })
	require.Equal(t, "a.example", <-ones)
	require.Equal(t, "b.example", <-twos)
}

// The authority may come or change after the channel has been made.
func TestAuthorityComesLater(t *testing.T) {
	ca, s := newIssuer(t), newEnv(t)
	listener, authorities := s.serve("tcp", "127.0.0.1:0", ca.server(nil, "a.example", "b.example"))
	ch := s.dial(ca.client(""))
	require.ErrorContains(t, ch.check(), "there is no such file")
	for _, name := range []string{"a.example", "b.example"} {
		s.put(fmt.Sprintf("authority: %s\nnodes: [{address: %q}]\n", name, listener.Addr()))
		s.wait("call of "+name, func() bool { return ch.check() == nil && <-authorities == name })
	}
}
