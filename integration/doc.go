// Package integration tests the least_conn policy together with systems whose
// libraries its users must not inherit. It is a module of its own.
package integration
