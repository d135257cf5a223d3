//go:build !linux

package settings

import "syscall"

// newRawReader returns nil: gRPC has no such reader here either.
func newRawReader(syscall.Conn) readyReader { return nil }
