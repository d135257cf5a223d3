//go:build !linux

package leastconntest

// reservePort does nothing: only Linux lets a listener share the port of a socket that is bound and does not listen.
func reservePort(string) (release func()) { return func() {} }
