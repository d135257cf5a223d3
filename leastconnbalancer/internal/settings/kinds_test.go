package settings_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
)

// token is a per-RPC credential that is counted.
type token struct {
	name  string
	calls atomic.Int64
}

func (t *token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	t.calls.Add(1)
	return map[string]string{t.name: "secret"}, nil
}

func (t *token) RequireTransportSecurity() bool { return true }

// testBundle is a bundle of what it is told.
type testBundle struct {
	creds  credentials.TransportCredentials
	perRPC credentials.PerRPCCredentials
	modes  map[string]credentials.Bundle
}

func (b *testBundle) TransportCredentials() credentials.TransportCredentials { return b.creds }

func (b *testBundle) PerRPCCredentials() credentials.PerRPCCredentials { return b.perRPC }

func (b *testBundle) NewWithMode(mode string) (credentials.Bundle, error) {
	if m, ok := b.modes[mode]; ok {
		return m, nil
	}
	return nil, fmt.Errorf("no mode %q", mode)
}

// altsLike has a handshake and AuthInfo of its own, and connections that change
// every byte and that gRPC may read when they are ready.
type altsLike struct{}

type altsInfo struct{ credentials.CommonAuthInfo }

func (altsInfo) AuthType() string { return "like-alts" }

func (altsInfo) ValidateAuthority(string) error { return nil }

type altsConn struct{ net.Conn }

func (c altsConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for i := range b[:n] {
		b[i] ^= 0x5a
	}
	return n, err
}

func (c altsConn) Write(b []byte) (int, error) {
	changed := make([]byte, len(b))
	for i := range b {
		changed[i] = b[i] ^ 0x5a
	}
	return c.Conn.Write(changed)
}

func (c altsConn) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	buf := pool.Get(size)
	n, err := c.Read(*buf)
	if n == 0 {
		pool.Put(buf)
		return nil, 0, err
	}
	return buf, n, err
}

func (altsLike) handshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	hello := []byte("hello")
	if _, err := c.Write(hello); err != nil {
		return nil, nil, err
	}
	if _, err := c.Read(hello); err != nil || string(hello) != "hello" {
		return nil, nil, errors.Join(err, errors.New("no hello"))
	}
	return altsConn{c}, altsInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

func (a altsLike) ClientHandshake(_ context.Context, authority string, c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if authority != "node.test" {
		return nil, nil, fmt.Errorf("authority %q", authority)
	}
	return a.handshake(c)
}

func (a altsLike) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return a.handshake(c)
}

func (altsLike) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "like-alts"}
}

func (a altsLike) Clone() credentials.TransportCredentials { return a }

func (altsLike) OverrideServerName(string) error { return nil }

// xdsLike finds what to connect by in the address's attributes, as the xDS
// credentials do.
type xdsLike struct {
	credentials.TransportCredentials
}

type xdsKey struct{}

func (xdsLike) UsesXDS() bool { return true }

func (x xdsLike) ClientHandshake(ctx context.Context, authority string, c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if credentials.ClientHandshakeInfoFromContext(ctx).Attributes.Value(xdsKey{}) == nil {
		return nil, nil, errors.New("nothing from the control plane")
	}
	return x.TransportCredentials.ClientHandshake(ctx, authority, c)
}

// clonedCreds count their clones, and say in their protocol what their server name
// is.
type clonedCreds struct {
	credentials.TransportCredentials
	name   string // overridden
	cloned int
}

func (c *clonedCreds) Clone() credentials.TransportCredentials {
	c.cloned++
	return &clonedCreds{TransportCredentials: c.TransportCredentials}
}

func (c *clonedCreds) OverrideServerName(name string) error {
	c.name = ", " + name
	return nil
}

func (c *clonedCreds) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "insecure" + c.name}
}

// issuer signs certificates.
type issuer struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newIssuer(t testing.TB) *issuer {
	i := &issuer{t: t}
	signed := i.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	i.key, i.cert = signed.PrivateKey.(*ecdsa.PrivateKey), signed.Leaf
	return i
}

// issue returns a certificate for a name, for servers and clients.
func (i *issuer) issue(name string) tls.Certificate {
	return i.sign(&x509.Certificate{
		DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

func (i *issuer) sign(cert *x509.Certificate) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(i.t, err)
	cert.SerialNumber, cert.Subject = big.NewInt(1), pkix.Name{CommonName: "test"}
	cert.NotBefore, cert.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, by := i.cert, i.key
	if parent == nil {
		parent, by = cert, key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, by)
	require.NoError(i.t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(i.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
