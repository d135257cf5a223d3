package settings_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/settings"
)

// Credentials that need security are refused without it, as ever.
func TestTokensNeedSecurity(t *testing.T) {
	_, addr := startNode(t)
	e := &ears{}
	c := dial(t, e, addr, withBundle(&testBundle{creds: insecure.NewCredentials(), perRPC: &token{name: "t"}})...)
	_, err := c.Unary(t.Context())
	require.ErrorContains(t, err, "cannot send secure credentials on an insecure connection")
}

// A server whose certificate is not trusted is not heard of.
func TestFailedHandshake(t *testing.T) {
	ca, other := newIssuer(t), newIssuer(t)
	pool := x509.NewCertPool()
	pool.AddCert(other.cert)
	_, addr := startNode(t, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{ca.issue("node.test")}})))
	e := &ears{}
	c := dial(t, e, addr, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool})))
	_, err := c.Unary(t.Context())
	require.ErrorContains(t, err, "certificate")
	require.Empty(t, e.heard())
}

// There are no credentials where the channel has none.
func TestNoCredentialsOfItsOwn(t *testing.T) {
	require.Nil(t, settings.Bundle(balancer.BuildOptions{}, &ears{}))
	require.Nil(t, settings.Bundle(balancer.BuildOptions{CredsBundle: &testBundle{}}, &ears{}))
	require.Nil(t, leastconnbalancer.Credentials(nil))

	gone := &testBundle{creds: insecure.NewCredentials()}
	b := settings.Bundle(balancer.BuildOptions{CredsBundle: gone}, &ears{})
	gone.creds = nil
	require.Nil(t, b.TransportCredentials())
}

// What is not of the handshake is that of the credentials within.
func TestWhatPassesThrough(t *testing.T) {
	inner := &clonedCreds{TransportCredentials: insecure.NewCredentials()}
	for name, c := range map[string]credentials.TransportCredentials{
		"bundle":      settings.Bundle(balancer.BuildOptions{DialCreds: inner}, &ears{}).TransportCredentials(),
		"Credentials": leastconnbalancer.Credentials(inner),
	} {
		t.Run(name, func(t *testing.T) {
			inner.cloned = 0
			require.Equal(t, inner.Info(), c.Info())
			clone := c.Clone()
			require.Equal(t, 1, inner.cloned)
			//lint:ignore SA1019 it passes through
			require.NoError(t, clone.OverrideServerName("a.test"))
			require.Equal(t, "insecure, a.test", clone.Info().SecurityProtocol)
			require.Equal(t, "insecure", c.Info().SecurityProtocol)
			server, _ := net.Pipe()
			served, _, err := c.ServerHandshake(server)
			require.NoError(t, err)
			require.Same(t, server, served)
			require.IsType(t, c, clone)
		})
	}
	require.Equal(t, leastconnbalancer.Credentials(inner), leastconnbalancer.Credentials(leastconnbalancer.Credentials(inner)))

	usesXDS := func(c credentials.TransportCredentials) bool {
		x, ok := c.(interface{ UsesXDS() bool })
		return ok && x.UsesXDS()
	}
	require.True(t, usesXDS(leastconnbalancer.Credentials(xdsLike{})))
	require.False(t, usesXDS(leastconnbalancer.Credentials(inner)))
}

// deaf wants to hear of no transport.
type deaf struct{}

func (deaf) Connected() settings.Transport { return nil }

func TestListenerThatWantsNothing(t *testing.T) {
	client, _ := net.Pipe()
	creds := settings.Bundle(balancer.BuildOptions{DialCreds: insecure.NewCredentials()}, deaf{}).TransportCredentials()
	conn, _, err := creds.ClientHandshake(t.Context(), "", client)
	require.NoError(t, err)
	require.Same(t, client, conn)
}

// Another mode of a bundle is read, too.
func TestModes(t *testing.T) {
	e := &ears{}
	b := settings.Bundle(balancer.BuildOptions{CredsBundle: &testBundle{creds: altsLike{}, modes: map[string]credentials.Bundle{
		"backend": &testBundle{creds: insecure.NewCredentials(), perRPC: &token{name: "t"}},
		"nil":     nil,
	}}}, e)
	backend, err := b.NewWithMode("backend")
	require.NoError(t, err)
	require.Equal(t, "insecure", backend.TransportCredentials().Info().SecurityProtocol)
	require.Equal(t, &token{name: "t"}, backend.PerRPCCredentials())
	client, _ := net.Pipe()
	_, _, err = backend.TransportCredentials().ClientHandshake(t.Context(), "", client)
	require.NoError(t, err)
	require.Len(t, e.heard(), 1)

	none, err := b.NewWithMode("nil")
	require.NoError(t, err)
	require.Nil(t, none)
	_, err = b.NewWithMode("unknown")
	require.EqualError(t, err, `no mode "unknown"`)

	_, err = settings.Bundle(balancer.BuildOptions{DialCreds: altsLike{}}, e).NewWithMode("backend")
	require.ErrorContains(t, err, `"backend"`)
}

// The addresses of the policy stay as they are.
func TestAddresses(t *testing.T) {
	addrs := []resolver.Address{{Addr: "a"}, {Addr: "b"}}
	plain := balancer.BuildOptions{DialCreds: insecure.NewCredentials()}
	require.Equal(t, addrs, settings.Addresses(plain, addrs, &ears{}))

	reading := balancer.BuildOptions{DialCreds: leastconnbalancer.Credentials(insecure.NewCredentials())}
	attached := settings.Addresses(reading, addrs, &ears{})
	require.Nil(t, addrs[0].Attributes)
	require.NotNil(t, attached[0].Attributes)
	require.Contains(t, attached[1].String(), `"least_conn": "hears the stream limit"`)
	require.Nil(t, settings.Bundle(reading, &ears{}))
}
