package settings

import (
	"fmt"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/credentials"
)

// Bundle returns the channel's credentials for one SubConn, whose transports l
// hears of: the value of balancer.NewSubConnOptions.CredsBundle. It returns nil,
// which leaves the channel's credentials in place, if the channel has none that
// can be wrapped, or if they read along already: then see Addresses.
//
// In the SubConn the bundle takes the place of the channel's bundle, so it has
// the per-RPC credentials of that. Those of the channel's dial options gRPC adds
// by itself.
func Bundle(channel balancer.BuildOptions, l Listener) credentials.Bundle {
	switch creds := transportCredentials(channel); {
	case creds == nil || readsAlong(creds):
		return nil
	case channel.CredsBundle != nil:
		return &bundle{Bundle: channel.CredsBundle, listener: l}
	default:
		return &dialBundle{creds: wrap(creds, l)}
	}
}

// transportCredentials returns the credentials with which gRPC would connect: a
// bundle's come first.
func transportCredentials(channel balancer.BuildOptions) credentials.TransportCredentials {
	if channel.CredsBundle != nil {
		return channel.CredsBundle.TransportCredentials()
	}
	return channel.DialCreds
}

// bundle is the channel's bundle.
type bundle struct {
	credentials.Bundle // embedded to intercept TransportCredentials and NewWithMode
	listener           Listener
}

func (b *bundle) TransportCredentials() credentials.TransportCredentials {
	return wrap(b.Bundle.TransportCredentials(), b.listener)
}

func (b *bundle) NewWithMode(mode string) (credentials.Bundle, error) {
	inner, err := b.Bundle.NewWithMode(mode)
	if inner == nil || err != nil {
		return nil, err
	}
	return &bundle{Bundle: inner, listener: b.listener}, nil
}

// dialBundle is the transport credentials of the channel's dial options.
type dialBundle struct {
	creds credentials.TransportCredentials
}

func (b *dialBundle) TransportCredentials() credentials.TransportCredentials { return b.creds }

func (b *dialBundle) PerRPCCredentials() credentials.PerRPCCredentials { return nil }

func (b *dialBundle) NewWithMode(mode string) (credentials.Bundle, error) {
	return nil, fmt.Errorf("credentials bundle mode %q: transport credentials have no modes", mode)
}
