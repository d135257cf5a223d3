package settings_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/credentials/local"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// channelCreds are the credentials of a channel, of which one half is set, and the
// server's.
type channelCreds struct {
	dial   credentials.TransportCredentials
	bundle credentials.Bundle
	server credentials.TransportCredentials
	tokens map[string]*token // by header
	dialed []grpc.DialOption
}

// kinds are all the ways of securing a channel.
func kinds(t *testing.T) map[string]channelCreds {
	ca := newIssuer(t)
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	server, client := ca.issue("node.test"), ca.issue("client.test")
	serverTLS := credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{server}})
	clientTLS := credentials.NewTLS(&tls.Config{RootCAs: pool})
	dialToken, bundleToken := &token{name: "of-dial"}, &token{name: "of-bundle"}
	tokens := func(all ...*token) map[string]*token {
		byName := map[string]*token{}
		for _, t := range all {
			byName[t.name] = t
		}
		return byName
	}
	return map[string]channelCreds{
		"insecure":        {dial: insecure.NewCredentials(), server: insecure.NewCredentials()},
		"insecure bundle": {bundle: insecure.NewBundle(), server: insecure.NewCredentials()},
		"local":           {dial: local.NewCredentials(), server: local.NewCredentials()},
		"TLS": {
			dial: clientTLS, server: serverTLS,
			tokens: tokens(dialToken), dialed: []grpc.DialOption{grpc.WithPerRPCCredentials(dialToken)},
		},
		"mTLS": {
			dial: credentials.NewTLS(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{client}}),
			server: credentials.NewTLS(&tls.Config{
				Certificates: []tls.Certificate{server}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
			}),
		},
		"bundle": {
			bundle: &testBundle{creds: clientTLS, perRPC: bundleToken}, server: serverTLS,
			tokens: tokens(bundleToken, dialToken), dialed: []grpc.DialOption{grpc.WithPerRPCCredentials(dialToken)},
		},
		"like ALTS": {
			dial: altsLike{}, server: altsLike{},
			tokens: tokens(dialToken), dialed: []grpc.DialOption{grpc.WithPerRPCCredentials(dialToken)},
		},
		"like xDS": {bundle: &testBundle{creds: xdsLike{clientTLS}, perRPC: bundleToken}, server: serverTLS, tokens: tokens(bundleToken)},
	}
}

// options returns the dial options for the credentials.
func (c channelCreds) options() []grpc.DialOption {
	if c.bundle != nil {
		return append(c.dialed, withBundle(c.bundle)...)
	}
	return append(c.dialed, grpc.WithTransportCredentials(c.dial))
}

// withBundle takes back the channel's own credentials.
func withBundle(b credentials.Bundle) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithTransportCredentials(nil), grpc.WithCredentialsBundle(b)}
}

// reading returns the same with what Credentials returns.
func (c channelCreds) reading() channelCreds {
	if c.bundle != nil {
		c.bundle = &testBundle{
			creds: leastconnbalancer.Credentials(c.bundle.TransportCredentials()), perRPC: c.bundle.PerRPCCredentials(),
		}
	} else {
		c.dial = leastconnbalancer.Credentials(c.dial)
	}
	return c
}

// seen is what one RPC shows of a connection's security, at both ends.
type seen struct {
	client, server string
	authority      []string
	headers        map[string][]string // of tokens
}

// The security of a channel is the same with a listener, by either way, and its
// servers' limits are heard.
func TestSecurityIsTheSame(t *testing.T) {
	for name, creds := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var last seen
			_, addr := startNode(t, grpc.Creds(creds.server), grpc.MaxConcurrentStreams(5),
				grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
					md, _ := metadata.FromIncomingContext(ctx)
					p, _ := peer.FromContext(ctx)
					mu.Lock()
					last = seen{server: describe(p.AuthInfo), authority: md.Get(":authority"), headers: map[string][]string{}}
					for name := range creds.tokens {
						last.headers[name] = md.Get(name)
					}
					mu.Unlock()
					return handle(ctx, req)
				}))
			addr.Attributes = addr.Attributes.WithValue(xdsKey{}, "from the control plane")
			call := func(e *ears, creds channelCreds) seen {
				c := dial(t, e, addr, creds.options()...)
				for _, tok := range creds.tokens {
					tok.calls.Store(0)
				}
				var p peer.Peer
				_, err := c.Unary(t.Context(), grpc.Peer(&p))
				require.NoError(t, err)
				for name, tok := range creds.tokens {
					require.EqualValues(t, 1, tok.calls.Load(), name)
				}
				mu.Lock()
				defer mu.Unlock()
				last.client = describe(p.AuthInfo)
				return last
			}

			plain := call(nil, creds)
			for name, values := range plain.headers {
				require.Equal(t, []string{"secret"}, values, name)
			}

			bundled := &ears{}
			require.Equal(t, plain, call(bundled, creds))
			require.Equal(t, [][]uint32{{5}}, bundled.heard())
			require.EqualValues(t, 1, bundled.installed.Load())

			attached := &ears{}
			require.Equal(t, plain, call(attached, creds.reading()))
			require.Equal(t, [][]uint32{{5}}, attached.heard(), "heard once")
			require.Zero(t, attached.installed.Load(), "no deprecated field")

			require.Equal(t, plain, call(nil, creds.reading()), "with another policy")
		})
	}
}

// describe says all of a connection's AuthInfo that is not random.
func describe(info credentials.AuthInfo) string {
	s := fmt.Sprintf("%T %s %v", info, info.AuthType(), credentials.CheckSecurityLevel(info, credentials.PrivacyAndIntegrity))
	if _, ok := info.(credentials.AuthorityValidator); ok {
		s += " validates"
	}
	if i, ok := info.(credentials.TLSInfo); ok {
		s += fmt.Sprintf(" %s %s %s", i.State.NegotiatedProtocol, i.State.ServerName, i.SPIFFEID)
		for _, cert := range i.State.PeerCertificates {
			s += fmt.Sprintf(" %x", cert.Raw)
		}
	}
	return s
}
