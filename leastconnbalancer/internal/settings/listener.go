// Package settings hears how many streams a server allows on a connection. The
// number is in the server's HTTP/2 SETTINGS frames, which gRPC keeps to itself.
// So the channel's credentials are wrapped: after the handshake they return a
// connection that reads along. The policy says for which SubConn, and is called
// back.
package settings

import "math"

// NoLimit is the limit of a server that announces none. gRPC takes the same
// number for it.
const NoLimit uint32 = math.MaxUint32

// Listener hears of the transports of one SubConn. It may be called from several
// goroutines.
type Listener interface {
	// Connected is called after each successful handshake, so once for each
	// transport, the older ones first. It returns what hears of this transport, or
	// nil if nothing shall. The transport may still fail before the SubConn is
	// READY; then its SetLimit may never be called. It must not block.
	Connected() Transport
}

// Transport hears of one transport. A transport that the server has asked to go
// away may be heard of beside its successor.
type Transport interface {
	// SetLimit is called with the server's MAX_CONCURRENT_STREAMS: first for the
	// server's first SETTINGS frame, with NoLimit if that has no such parameter;
	// then for each further frame that changes it, also to 0. The calls for a
	// transport never overlap.
	//
	// They run on the goroutine on which gRPC reads the connection, before gRPC has
	// the bytes: the first one ends before the SubConn is READY, and a raised limit
	// is known before gRPC opens streams by it. So SetLimit must not block. Above
	// all, it must not take a lock that is held while a SubConn is shut down, since
	// that waits for the reading goroutine.
	SetLimit(streams uint32)
}
