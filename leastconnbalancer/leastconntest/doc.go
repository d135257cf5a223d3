// Package leastconntest offers real gRPC nodes on loopback that hold RPCs and count what they see, and channels whose
// resolver is driven by hand. Tests, examples and scenario runners build on it.
//
// A [Node] serves grpc.testing.TestService and grpc.health.v1.Health over TCP. It can age its connections
// ([Node.GoAway]), die and come back on its address ([Node.Stop], [Node.Restart]), fail, delay, hold and end RPCs. A
// [Channel] is a ClientConn that is told its endpoints with [Channel.Update]; a [Stream] is an open bidirectional RPC
// that knows which node serves it. A [Proxy] stands between them and resets, silences, slows or refuses connections; a
// [Recorder] keeps the metrics that channels record.
//
// The package knows nothing about any load balancing policy: it names least_conn in the default service config, and
// whoever dials must have linked that policy or must give another config. Nothing in it waits by sleeping; whatever
// takes time is polled for with [WaitFor].
//
// It links the client side of health checking (google.golang.org/grpc/health), so a program that uses it cannot show
// what happens without that import.
package leastconntest
