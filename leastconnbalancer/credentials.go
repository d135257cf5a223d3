package leastconnbalancer

import (
	"google.golang.org/grpc/credentials"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/settings"
)

// Credentials returns creds for grpc.WithTransportCredentials, or for a bundle,
// with which the policy hears how many streams each server allows on a connection.
//
// It is not needed with the releases of grpc-go that this module is tested with.
// There the policy puts the like around the channel's credentials by itself,
// through a deprecated field, balancer.NewSubConnOptions.CredsBundle. With a
// release that has dropped the field, a channel whose credentials are not of this
// function knows no server's limit.
//
// Nothing about the security changes: handshake, AuthInfo and Info are those of
// creds. With other policies, on a server, and for a channel's connections to
// others than its endpoints, the result is as good as creds. Credentials of
// Credentials are returned as they are, and so is nil.
func Credentials(creds credentials.TransportCredentials) credentials.TransportCredentials {
	return settings.Credentials(creds)
}
