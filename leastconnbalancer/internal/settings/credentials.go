package settings

import (
	"context"
	"net"

	"google.golang.org/grpc/credentials"
)

// Credentials returns creds that read along for whichever listener Addresses has
// attached to the address. Elsewhere they are creds. They may be wrapped twice,
// and nil is not wrapped.
func Credentials(creds credentials.TransportCredentials) credentials.TransportCredentials {
	if creds == nil || readsAlong(creds) {
		return creds
	}
	return wrap(creds, nil)
}

// readsAlong reports whether creds are of Credentials.
func readsAlong(creds credentials.TransportCredentials) bool {
	r, ok := creds.(*readingCredentials)
	return ok && r.listener == nil
}

// readingCredentials are credentials whose connections read along.
type readingCredentials struct {
	credentials.TransportCredentials          // embedded to intercept ClientHandshake and Clone
	listener                         Listener // nil: the address's
}

// wrap returns credentials for l. There are none without creds, since ones that
// the application has not chosen could be weaker than what it has.
func wrap(creds credentials.TransportCredentials, l Listener) credentials.TransportCredentials {
	if creds == nil {
		return nil
	}
	return &readingCredentials{TransportCredentials: creds, listener: l}
}

func (r *readingCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, info, err := r.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if c == nil || err != nil {
		return c, info, err
	}
	l := r.listener
	if l == nil {
		l = listenerOf(credentials.ClientHandshakeInfoFromContext(ctx).Attributes)
	}
	if l == nil {
		return c, info, nil
	}
	if t := l.Connected(); t != nil {
		c = newConn(c, t)
	}
	return c, info, nil
}

func (r *readingCredentials) Clone() credentials.TransportCredentials {
	return wrap(r.TransportCredentials.Clone(), r.listener)
}

// UsesXDS tells gRPC's xDS policies whether to give the credentials the
// control plane's security configuration.
func (r *readingCredentials) UsesXDS() bool {
	x, ok := r.TransportCredentials.(interface{ UsesXDS() bool })
	return ok && x.UsesXDS()
}
